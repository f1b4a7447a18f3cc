"""Tables, claims, figures and the HTML page, made from the cells of all tasks."""
