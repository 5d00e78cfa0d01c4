// Package observe describes a domain to people: who holds which memory, and which processes wait
// for which queues and locks. An [Observer] reads the words of a domain and changes none of them.
package observe
