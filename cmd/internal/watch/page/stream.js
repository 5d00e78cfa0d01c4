// The stream of readings, and what is to be said of it.

// open calls on(event, data) for each event of the server: hello, history, moment, end. state(s) is
// told connecting, live, late, lost or ended.
export function open(on, state) {
  let source = null, timer = 0, wait = 5000, ended = false;
  const late = () => {
    clearTimeout(timer);
    timer = setTimeout(() => state("late"), wait);
  };
  const connect = () => {
    state("connecting");
    source = new EventSource("events");
    for (const event of ["history", "moment"]) {
      source.addEventListener(event, (e) => {
        const data = JSON.parse(e.data);
        if (data.every) wait = Math.max(5000, 3 * data.every);
        if (event === "moment") state("live");
        late();
        on(event, data);
      });
    }
    source.addEventListener("hello", late);
    source.addEventListener("end", () => {
      ended = true;
      clearTimeout(timer);
      source.close();
      state("ended");
    });
    source.onerror = () => {
      clearTimeout(timer);
      if (ended) return;
      if (source.readyState !== EventSource.CLOSED) return state("connecting"); // it tries again by itself
      state("lost"); // it was refused: another server has the port, or too many pages are open
      setTimeout(connect, 5000);
    };
  };
  connect();
  // A browser may have only a few connections to one server, so a page that nobody sees has none.
  document.addEventListener("visibilitychange", () => {
    if (ended) return;
    if (document.hidden) {
      clearTimeout(timer);
      source.close();
    } else if (source.readyState === EventSource.CLOSED) {
      connect();
    }
  });
}
