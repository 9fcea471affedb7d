"""Tables as the catalog knows them: made, found, changed, dropped, described."""
