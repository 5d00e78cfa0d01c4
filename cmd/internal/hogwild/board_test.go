package hogwild_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/hogwild"
)

var (
	half = hogwild.Report{Rank: 1, PID: 4242, Epoch: 1, Done: 320, Of: 640, Total: 320, Loss: 2.25,
		Peak: 3 << 20, Alone: 1 << 20}
	whole = hogwild.Report{Rank: 0, PID: 4241, Epoch: 1, Done: 640, Of: 640, Total: 640, Loss: 0.5,
		Peak: 2 << 20, Alone: 1 << 20}
)

func TestLinesSayWhoIsHowFar(t *testing.T) {
	var out bytes.Buffer
	hogwild.ShowLines(&out, half, whole)
	want := "4242\trank 1\tTrain Epoch: 1 [320/640 (50%)]\tLoss: 2.250000\n" +
		"4241\trank 0\tTrain Epoch: 1 [640/640 (100%)]\tLoss: 0.500000\n"
	if out.String() != want {
		t.Errorf("%q\nwant\n%q", out.String(), want)
	}
}

// A worker that stops half way leaves a bar that stands where it stopped, and does not keep the
// others waiting.
func TestBarsEndThoughAWorkerDoesNot(t *testing.T) {
	var out bytes.Buffer
	hogwild.ShowBars(&out, []int{640, 640}, 1, half, whole)
	for _, want := range []string{"worker 0, pid 4241", "100 % epoch 1/1, loss 0.5000", "worker 1, pid 4242",
		" 50 % epoch 1/1, loss 2.2500"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestBarsIgnoreARankThatTheyDoNotHave(t *testing.T) {
	var out bytes.Buffer
	hogwild.ShowBars(&out, []int{640, 640}, 1, hogwild.Report{Rank: 2}, hogwild.Report{Rank: -1})
	if strings.Contains(out.String(), "pid") {
		t.Error(out.String())
	}
}
