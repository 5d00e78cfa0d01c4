// Package observe is the suite observe of shoal bench: what it costs to look at a program of 64
// processes and 100,000 blocks once a second, as shoal top, shoal watch and a scrape of package
// metrics do.
//
// The trap: the program that is looked at is the one that measures, so its figures have both sides
// of a reading.
package observe
