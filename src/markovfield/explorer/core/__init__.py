"""What pages and the server share: what is explored (`subject`), what a page is made of (`page`)."""
