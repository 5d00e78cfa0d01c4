package hogwild_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/hogwild"
)

func original() hogwild.Options {
	return hogwild.Options{Workers: 2, Epochs: 10, BatchSize: 64, TestBatchSize: 1000, LogInterval: 10,
		LR: 0.01, Momentum: 0.5, Seed: 1}
}

func TestOptionsOfTheOriginalAreGood(t *testing.T) {
	o := original()
	if err := hogwild.Check(&o); err != nil {
		t.Error(err)
	}
}

func TestOptionsThatMakeNoSenseAreNamed(t *testing.T) {
	for flag, spoil := range map[string]func(o *hogwild.Options){
		"--workers 0":         func(o *hogwild.Options) { o.Workers = 0 },
		"--workers 251":       func(o *hogwild.Options) { o.Workers = 251 },
		"--threads -1":        func(o *hogwild.Options) { o.Threads = -1 },
		"--epochs -3":         func(o *hogwild.Options) { o.Epochs = -3 },
		"--batch-size 0":      func(o *hogwild.Options) { o.BatchSize = 0 },
		"--test-batch-size 0": func(o *hogwild.Options) { o.TestBatchSize = 0 },
		"--log-interval 0":    func(o *hogwild.Options) { o.LogInterval = 0 },
		"--lr -0.1":           func(o *hogwild.Options) { o.LR = -0.1 },
		"--lr NaN":            func(o *hogwild.Options) { o.LR = math.NaN() },
		"--lr +Inf":           func(o *hogwild.Options) { o.LR = math.Inf(1) },
		"--momentum 1":        func(o *hogwild.Options) { o.Momentum = 1 },
		"--momentum NaN":      func(o *hogwild.Options) { o.Momentum = math.NaN() },
		"--device cuda:1: ":   func(o *hogwild.Options) { o.Device = "cuda:1" },
		"--device gpu: tensor: unknown device: \"gpu\"": func(o *hogwild.Options) { o.Device = "gpu" },
		"--download requires":                           func(o *hogwild.Options) { o.Download = true },
		"--out m.pt: ":                                  func(o *hogwild.Options) { o.Out = "m.pt" },
		"--mirror requires": func(o *hogwild.Options) {
			o.Data, o.Mirror = "mnist", "http://localhost"
		},
	} {
		o := original()
		spoil(&o)
		if err := hogwild.Check(&o); !errors.Is(err, hogwild.ErrOption) || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
