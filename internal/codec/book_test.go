package codec

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

func TestABookIsFilledInWhenSomebodyLooks(t *testing.T) {
	var entered []string
	b := book[string]{enter: func(s string) {
		if slices.Contains(entered, s) {
			panic(s + " is taken")
		}
		entered = append(entered, s)
	}}
	b.addEntries("at once")
	if len(entered) != 1 {
		t.Errorf("entered %q in a process that trusts nobody", entered)
	}
	Trust(true)
	defer Trust(false)
	b.addEntries("late", "later")
	b.addEntries("last")
	if len(entered) != 1 {
		t.Errorf("entered %q before anybody looked", entered)
	}
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			b.openForRead()
			defer b.RUnlock()
			if want := []string{"at once", "late", "later", "last"}; !slices.Equal(entered, want) {
				t.Errorf("found %q, want %q", entered, want)
			}
		})
	}
	readers.Wait()
	b.addEntries("late")
	if got := panicOf(b.openForRead); got != "late is taken" {
		t.Errorf("what is in twice is found by who looks: panic %q", got)
	}
	b.openForRead() // once
	b.RUnlock()
}

func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return text
}
