// Package domains finds the current user's running Shoal programs and reports on their shared
// memory and their processes.
//
//	census, err := domains.Look(ctx, time.Second)
//	if err != nil {
//		return err
//	}
//	for _, d := range census.Domains {
//		d.Print(os.Stdout)
//	}
//
// Callers that observe repeatedly should use a [Watcher], which is cheaper. A rate covers the
// observed interval, so a process that started or ended during it has no rate.
package domains
