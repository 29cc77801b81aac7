/** The answer of an agent whose service is not there: a plain HTTP/1.1 502 that says which address and why. */

export function badGateway(why: string): Buffer {
  const body = Buffer.from(
    `502 Bad Gateway\n\nThe tunnel works, but the service behind it does not answer: ${why}.\n` +
      'Start the service, or point the agent at the address where it listens.\n',
  )
  const head = [
    'HTTP/1.1 502 Bad Gateway',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${body.length}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ]
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body])
}
