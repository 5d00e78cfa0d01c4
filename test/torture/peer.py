def run(conn):
    while True:
        number, t = conn.recv()
        conn.send((number, t * 2))
