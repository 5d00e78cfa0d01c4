package dist

// Letter is what inboxes carry.
type Letter = letter
