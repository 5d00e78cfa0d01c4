//go:build shoalcrash

package main

import "fmt"

// Kinds of records that a worker sends. Each has the ID of a message: worker number << 24 |
// sequence number.
const (
	saysBegin = 'B' // before a put
	saysPut   = 'P' // after the put
	saysTake  = 'T' // before a get; the ID is the maximum number of messages
	saysGot   = 'G' // got this message
	saysNone  = 'N' // got none
)

// A ledger holds the records of all workers of a storm, by worker and sequence number, as one
// byte per message. The caller must serialize the calls.
type ledger struct {
	accounts map[uint64][]byte
	messages int // messages put
	read     int // messages that workers may have dropped by dying during a get
}

// Flags in the byte of a message. The upper bits count arrivals.
const (
	begun   = 1
	put     = 2
	arrived = 4
)

func newLedger() *ledger { return &ledger{accounts: make(map[uint64][]byte)} }

func (l *ledger) enter(kind byte, id uint64) {
	if kind == saysTake || kind == saysNone {
		return
	}
	a, seq := l.accounts[id>>24], int(id&(1<<24-1))
	for len(a) <= seq {
		a = append(a, 0)
	}
	switch kind {
	case saysBegin:
		a[seq] |= begun
	case saysPut:
		a[seq] |= put
		l.messages++
	case saysGot:
		a[seq] += arrived
	}
	l.accounts[id>>24] = a
}

// compare appends a description of each violation of the protocol to *violate. It returns the
// number of messages that arrived more than once, and of those that were put and did not arrive.
// Messages that a worker may have dropped by dying are no violation.
func (l *ledger) compare(violate *[]string) (duplicates, lost int) {
	for worker, a := range l.accounts {
		for seq, b := range a {
			if n := b / arrived; n > 1 {
				duplicates++
				*violate = append(*violate, fmt.Sprintf("message %d of worker %d came %d times", seq, worker, n))
			}
			if b >= arrived && b&begun == 0 {
				*violate = append(*violate, fmt.Sprintf("corrupt: message %d of worker %d was never sent", seq, worker))
			}
			if b&put != 0 && b < arrived {
				lost++
			}
		}
	}
	if lost > l.read {
		*violate = append(*violate,
			fmt.Sprintf("%d messages are lost, and the dead were reading %d at most", lost, l.read))
	}
	return duplicates, lost
}
