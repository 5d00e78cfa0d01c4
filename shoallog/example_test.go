package shoallog_test

import (
	"log/slog"
	"os"

	"github.com/shoal-mp/shoal/shoallog"
)

func ExampleNewHandler() {
	withoutPID := func(groups []string, a slog.Attr) slog.Attr { // so that each run prints the same
		if a.Key == slog.TimeKey || a.Key == "pid" {
			return slog.Attr{}
		}
		return a
	}
	h := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutPID})
	log := slog.New(shoallog.NewHandler(h))
	log.Info("loaded", "samples", 60000) // a worker says "function=train rank=3"
	// Output: level=INFO msg=loaded function=main rank=0 samples=60000
}
