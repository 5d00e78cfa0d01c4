// Package shoallog adds to each record of log/slog which process logged it: its function, its rank
// and its number.
//
//	func main() {
//		slog.SetDefault(slog.New(shoallog.NewHandler(slog.NewJSONHandler(os.Stderr, nil))))
//		shoal.Main(run)
//	}
//
// What stands before shoal.Main runs in every worker as well, so one statement serves all
// processes.
//
// The trap: a goroutine that stands for a process (shoal.GoroutineStart) has the function and the
// rank of its process.
package shoallog
