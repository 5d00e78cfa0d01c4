// Package safefile opens, reads and replaces files that other programs may have written.
//
// [Open] opens regular files only. [Replace] and [Replacement] write a new file and move it into
// place once it is complete. [CheckSize] and [Limit] bound the memory that the header of a file may
// request. [ReadZip] reads the directory of a zip archive and rejects entries that overlap or lie
// about their size.
package safefile
