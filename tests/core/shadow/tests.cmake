# Several threads offer rows.
bitnet_label(concurrent core.shadow.waiting_rows)
