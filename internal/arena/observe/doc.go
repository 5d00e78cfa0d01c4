// Package observe describes a domain: the memory that each process holds, and the processes that
// wait for queues and locks. An [Observer] reads the words of a domain and changes none of them.
package observe
