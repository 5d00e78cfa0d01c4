def run(conn, k):
    t = conn.recv()
    t.mul_(k)
    conn.send(t.sum())
