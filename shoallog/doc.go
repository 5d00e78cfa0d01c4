// Package shoallog adds the origin to each record of log/slog: the function, rank and PID of the
// process.
//
//	func main() {
//		slog.SetDefault(slog.New(shoallog.NewHandler(slog.NewJSONHandler(os.Stderr, nil))))
//		shoal.Main(run)
//	}
//
// Code before shoal.Main runs in every worker too, so one statement configures all processes.
//
// The trap: a goroutine that replaces a process (shoal.GoroutineStart) logs the function and rank
// of the process it runs in.
package shoallog
