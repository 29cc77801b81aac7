/** Opens the listeners of the management API: for metrics, and for callers. */
import { constants } from 'node:crypto'
import type { Server } from 'node:http'
import type { buildApi } from '../../control-plane/api/app.ts'
import { encryptConnections } from '../../control-plane/api/encrypt-connections.ts'
import { OwnCertificate } from '../../control-plane/api/own-certificate.ts'
import type { ConnectionCaps } from '../../lib/net/connection-caps.ts'
import { addressText, listenOn, listenText } from '../../lib/net/listen-on.ts'
import { Authority } from '../../lib/x509/certificate-authority.ts'
import { modernSuites } from '../../lib/x509/tls-suites.ts'
import { namesOfApi } from '../config/own-names.ts'
import type { OpeningApi } from './opening-api.ts'

/** How often the API gets a new certificate of the server's own authority, in milliseconds: each lasts a year. */
const RENEWAL_LOOK_MS = 24 * 3_600_000

/** Each renegotiation would cost the server a handshake and the peer next to nothing. */
const secureOptions = constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_PRIORITIZE_CHACHA

/** Resolves with the address and the actual port, as the one below. */
export async function listenForMetrics(opening: OpeningApi, server: Server): Promise<string> {
  const address = await listen(opening, server, 'metrics')
  opening.opened.defer(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return address
}

/** For callers; from here on they are served. Those who are served when it closes may finish within the drain time. */
export async function listenForCallers(
  opening: OpeningApi,
  api: Awaited<ReturnType<typeof buildApi>>,
  caps: ConnectionCaps,
): Promise<string> {
  const encryption = opening.settings.apiTls ? await encrypt(opening, api.server, caps) : undefined
  const address = await listen(opening, api.server, 'api')
  opening.opened.defer(async () => {
    const overdue = setTimeout(() => {
      api.server.closeAllConnections()
      encryption?.stop()
    }, opening.live.now.drainTimeoutMs)
    const closed = api.close()
    encryption?.stop()
    await closed
    clearTimeout(overdue)
  })
  return address
}

/** TLS for the API, with a certificate for its name, or else one of the server's own authority. */
async function encrypt({ settings, control, opened }: OpeningApi, server: Server, caps: ConnectionCaps) {
  const issuer = new Authority(control.authority.cert, control.authority.key)
  const tls = { minVersion: `TLSv${settings.tlsMinVersion}`, ciphers: modernSuites, secureOptions } as const
  const certificate = new OwnCertificate({ issue: () => issuer.issue(namesOfApi(settings)), tls })
  await control.followCertificates((byName) => certificate.replace(byName))
  const encryption = encryptConnections(server, { certificate, tls, mayShake: (ip) => caps.shake(ip) })
  const renewal = setInterval(() => encryption.renew(), RENEWAL_LOOK_MS).unref()
  opened.defer(() => clearInterval(renewal))
  return encryption
}

async function listen({ listeners, descriptors }: OpeningApi, server: Server, caller: 'api' | 'metrics') {
  const on = listeners[caller]
  server.prependListener('connection', (socket) => descriptors.admits(socket, caller))
  return addressText(await listenOn(server, on, (error) => descriptors.failed(error, listenText(on))))
}
