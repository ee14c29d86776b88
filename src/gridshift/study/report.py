def write_report(result, store):
    store.write_text("report.html", "x")
