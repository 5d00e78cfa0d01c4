package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

const tries = 20

// send is a client: it sends requests for x to the server at url, one after another, until ctx
// ends. It records each outcome and passes each answer to l.answers. With -accept it repeats a
// request if the connection broke.
func (l *ledger) send(ctx context.Context, url string, x float32) {
	client, last := &http.Client{Transport: &http.Transport{}}, 0
	defer client.CloseIdleConnections()
	url = fmt.Sprint(url, "/predict?x=", x)
	for ctx.Err() == nil {
		a, err := get(client, url)
		again := 0
		for ; *accept && err != nil && again < tries; again++ {
			a, err = get(client, url)
		}
		l.recordOutcome(a, err, again, err == nil && a.isConsistent(x) && a.Number >= last)
		last = a.Number
		select {
		case l.answers <- a:
		case <-ctx.Done():
		}
	}
}

// recordOutcome records the outcome of a request: its answer or error, the number of times that
// it was sent again, and whether the answer is right. It may be called from several goroutines.
func (l *ledger) recordOutcome(a answer, err error, again int, right bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	l.again += again
	switch {
	case err != nil:
		l.failed++
	case !right:
		l.wrong++
	}
	l.versions[a.Number] = true
}

// isConsistent reports whether all elements of the answer to x are correct for the version of
// the weights that it names.
func (a *answer) isConsistent(x float32) bool {
	for _, y := range a.Y {
		if y != x*size*versionElement(a.Number) {
			return false
		}
	}
	return len(a.Y) == 8*size
}

func get(client *http.Client, url string) (a answer, err error) {
	r, err := client.Get(url)
	if err != nil {
		return a, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return a, fmt.Errorf("status %s", r.Status)
	}
	return a, json.NewDecoder(r.Body).Decode(&a)
}
