package shoal_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal"
)

type ctx = context.Context

type inner struct{ Log func() }
type refused struct{ Net inner }

// refusals are panics of Register, which must be provoked before Main.
var refusals = map[string]string{
	"func": panicOf(func() { shoal.Register("bad", func(_ ctx, _ int, _ refused) error { return nil }) }),
	"twice": panicOf(func() {
		shoal.Register("twice", func(_ ctx, _ int, _ int) error { return nil })
		shoal.Register("twice", func(_ ctx, _ int, _ int) error { return nil })
	}),
	"nil":     panicOf(func() { shoal.Register[int]("no function", nil) }),
	"nothing": panicOf(func() { shoal.Register("", func(_ ctx, _ int, _ int) error { return nil }) }),
}

func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}

func TestRegister_RefusesWithAReason(t *testing.T) {
	for what, want := range map[string]string{
		"func":    `shoal: Register("bad"): refused.Net.Log: func() cannot cross processes`,
		"twice":   `shoal: Register("twice"): name is already taken: names must be unique in a program`,
		"nil":     `shoal: Register("no function"): want a nonempty name and a non-nil function`,
		"nothing": `shoal: Register(""): want a nonempty name and a non-nil function`,
	} {
		if got := refusals[what]; len(got) < len(want) || got[:len(want)] != want {
			t.Errorf("%s: panic %q, want %q", what, got, want)
		}
	}
}
