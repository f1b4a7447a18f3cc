"""The report as one self-contained HTML page."""

from pipeline.report.page.browse import TaskFolders
from pipeline.report.page.origin import Origin
from pipeline.report.page.render import PageContent, PageFigure, page_figures, write_page

__all__ = ["Origin", "PageContent", "PageFigure", "TaskFolders", "page_figures", "write_page"]
