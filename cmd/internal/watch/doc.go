// Package watch serves a web page that shows the current user's running Shoal programs.
//
//	s, err := watch.Listen(watch.Options{Every: time.Second})
//	if err != nil {
//		return err
//	}
//	fmt.Println(s.URL)
//	return s.Serve(ctx)
//
// One goroutine observes the programs, regardless of the number of open pages. It also runs while
// no page is open, so that a page opened later shows the history.
//
// A [Join] adds the programs of another machine to the page, as reported by shoal watch there. Its
// reports are untrusted input and must be validated.
//
// The URL contains the access token and must be kept secret. A request without the token gets only
// a page with instructions.
package watch
