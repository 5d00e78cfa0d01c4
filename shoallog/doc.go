// Package shoallog adds the origin to each record of log/slog: the function, rank and PID of the
// process.
//
//	func main() {
//		h := slog.NewJSONHandler(os.Stderr, nil)
//		slog.SetDefault(slog.New(shoallog.NewHandler(h)))
//		shoal.Main(run)
//	}
//
//	func run(ctx context.Context) error {
//		slog.InfoContext(ctx, "started")
//		return nil
//	}
//
// Start with [NewHandler].
//
// Code before shoal.Main runs in every worker too, so one statement configures all processes.
//
// The trap: a goroutine that replaces a process (shoal.GoroutineStart) logs the function and rank
// of the process it runs in.
package shoallog
