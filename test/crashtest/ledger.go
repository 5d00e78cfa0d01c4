//go:build shoalcrash

package main

import "fmt"

// What a worker says, each with the number of a message: worker number << 24 | sequence number.
const (
	saysBegin = 'B' // it is about to put it
	saysPut   = 'P' // it has
	saysTake  = 'T' // it is about to get messages: so many at most
	saysGot   = 'G' // it got this one
	saysNone  = 'N' // it got none
)

// A ledger has what all workers said, by worker and sequence number: a byte for each message.
type ledger struct {
	accounts map[uint64][]byte
	messages int // put
	read     int // messages that workers may have dropped which died in the middle of a get
}

// The byte of a message counts its arrivals in its upper bits.
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

// compare adds a sentence for each thing that the protocol does not allow.
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
		*violate = append(*violate, fmt.Sprintf("%d messages are lost, and the dead were reading %d at most", lost, l.read))
	}
	return duplicates, lost
}
