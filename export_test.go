package shoal

import (
	"bytes"
	"os"
	"strings"
)

// CutFrames feeds a stream in pieces of n bytes to the reader of the starter and returns what it
// makes of it.
func CutFrames(stream []byte, n int) (kinds []byte, bodies [][]byte, err error) {
	f := controlFrames{each: func(kind frameKind, body []byte) {
		kinds, bodies = append(kinds, byte(kind)), append(bodies, bytes.Clone(body))
	}}
	for len(stream) > 0 {
		n := min(n, len(stream))
		f.Write(stream[:n])
		stream = stream[n:]
	}
	return kinds, bodies, f.err
}

// ReadFrames reads the same stream as a worker does, until nothing more can be read.
func ReadFrames(stream []byte) (kinds []byte, bodies [][]byte) {
	r := bytes.NewReader(stream)
	for {
		kind, body, err := readFrame(r)
		if err != nil {
			return kinds, bodies
		}
		kinds, bodies = append(kinds, byte(kind)), append(bodies, body)
	}
}

// Understand decodes a control message as each of the kinds there are.
func Understand(body []byte) {
	decodeControl(jobPlan, body)
	decodeControl(readyPlan, body)
	decodeControl(outcomePlan, body)
	decodeControl(cancellationPlan, body)
}

// OversubscriptionPeriod is how often oversubscription is looked at.
var OversubscriptionPeriod = &oversubscriptionPeriod

// OversubscriptionLooks is how often one was looked for.
func OversubscriptionLooks() int {
	oversubscription.mu.Lock()
	defer oversubscription.mu.Unlock()
	return oversubscription.looks
}

var (
	SplitCrash        = splitCrash
	SwitchesPerSecond = switchesPerSecond
	RestartRow        = Restart.failuresInRow
	RestartPause      = Restart.backoff
)

// Unsaid returns what is reported of sig besides err.
func Unsaid(sig os.Signal, err error) error { return (&interrupt{sig}).omitIfReported(err) }

// ReadMark reads the value by which a worker is told what it is, and writes it again.
func ReadMark(value string) (again string, err error) {
	m, err := parseMark(value)
	if err != nil {
		return "", err
	}
	_, again, _ = strings.Cut(m.String(), "=")
	return again, nil
}
