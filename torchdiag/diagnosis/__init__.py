"""From facts to a diagnosis: every rule asked, gains replayed, idle time owned once, the verdict put into words."""
