// Package watch serves the running Shoal programs of this user as a page for a browser.
//
//	s, err := watch.Listen(watch.Options{Every: time.Second})
//	if err != nil {
//		return err
//	}
//	fmt.Println(s.URL)
//	return s.Serve(ctx)
//
// One goroutine looks at the programs, however many pages are open, and goes on where none is: a
// page that is opened later has the memory of the time before.
//
// A Join has the programs of another machine on the same page, as the shoal watch there tells them.
// What it says is checked, since that machine may be in other hands.
//
// The trap: the URL is the key. A browser without its token is told what to do, and nothing else.
package watch
