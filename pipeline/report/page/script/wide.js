// Mark tables that are wider than the page: the style then says that there are more columns.

function markWideTables() {
  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      target.classList.toggle("wide", target.scrollWidth > target.clientWidth + 1);
    }
  });
  for (const box of document.querySelectorAll(".scroll")) observer.observe(box);
}
