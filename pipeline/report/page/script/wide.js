// Mark tables that are wider than the page: the style then says that there are more columns.

const wideTables = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    target.classList.toggle("wide", target.scrollWidth > target.clientWidth);
  }
});
