/** How the test authority checks that the platform serves a name. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { connect } from 'node:tls'
import { certificateParts } from '../../src/lib/x509/certificate-fields.ts'

/** What a name answers to a plain request; its status if that is not 200. */
export async function plainGet(port: number, host: string, path: string): Promise<string> {
  const asked = request({ host: '127.0.0.1', port, path, headers: { host }, agent: false }).end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  const text = (await buffer(response)).toString()
  return response.statusCode === 200 ? text : `status ${response.statusCode}`
}

/** RFC 8737 §3: whether the name shows the expected certificate. */
export async function handshake(port: number, name: string, expected: string): Promise<boolean> {
  const socket = connect({
    host: '127.0.0.1',
    port,
    servername: name,
    ALPNProtocols: ['acme-tls/1'],
    rejectUnauthorized: false,
  })
  try {
    await once(socket, 'secureConnect')
    const shown = socket.getPeerX509Certificate()
    if (!shown || socket.alpnProtocol !== 'acme-tls/1') return false
    const digest = createHash('sha256').update(expected).digest()
    const wanted = Buffer.concat([Buffer.from([0x04, digest.length]), digest])
    const found = certificateParts(shown.raw).extensions.get('1.3.6.1.5.5.7.1.31')
    return shown.subjectAltName === `DNS:${name}` && found !== undefined && found.equals(wanted)
  } finally {
    socket.destroy()
  }
}
