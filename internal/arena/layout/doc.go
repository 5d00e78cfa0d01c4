// Package layout has the structures of the shared memory of a domain: the control segment with the
// header, the participants, the lanes and the block headers, and the objects in blocks of the data
// segment. docs/memory.md specifies them.
//
// Any process may have overwritten the memory. So the functions that follow an index, an extent or
// a length compare it with its bounds first.
package layout
