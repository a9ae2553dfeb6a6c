"""A compile as a page: `document` collects what a trace knows, `page` writes it as one HTML file with no server."""
