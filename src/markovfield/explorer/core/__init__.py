"""What pages and the server share.

What is explored (`subject`) and how its file is read (`opening`); what a page is made of
(`page`); whether anybody still waits (`stopping`).
"""
