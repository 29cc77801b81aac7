/** nginx as most people would set it up in front of a service: TLS, kept-alive upstream connections, forwarding headers. */
import { Authority, createAuthority } from '../../src/lib/x509/certificate-authority.ts'
import type { Entrance } from '../entrance.ts'
import { startNginx } from '../nginx.ts'
import { freePort, LOOPBACK } from '../stage/ports.ts'
import type { Stage } from '../stage/stage.ts'

const NAME = 'nginx.bench.test'

/** Kept-alive connections to the upstream: one for each visitor. */
const KEPT = 64

export interface TlsProxy {
  readonly entrance: Entrance
  readonly caFile: string
}

export async function startTlsProxy(
  stage: Stage,
  { nginx, upstreamPort }: { nginx: string; upstreamPort: number },
): Promise<TlsProxy> {
  const { certPem: ca, keyPem } = createAuthority()
  // The same type of key as our edges have.
  const { cert, key } = new Authority(ca, keyPem).issue([NAME])
  const [certFile, keyFile] = [await stage.write('cert.pem', cert), await stage.write('key.pem', key)]
  const port = await freePort()
  const server = `
    listen ${LOOPBACK}:${port} ssl backlog=4096;
    server_name ${NAME};
    ssl_certificate ${certFile};
    ssl_certificate_key ${keyFile};
    ssl_protocols TLSv1.2 TLSv1.3;
    location / {
      proxy_pass http://upstream;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Host $host;
      proxy_set_header X-Forwarded-Proto $scheme;
    }`
  const beside = `upstream upstream {
    server ${LOOPBACK}:${upstreamPort};
    keepalive ${KEPT};
    keepalive_requests 1000000000;
  }`
  await startNginx(stage, { nginx, port }, { server, beside })
  return { entrance: { host: LOOPBACK, port, tls: { name: NAME, ca } }, caFile: await stage.write('ca.pem', ca) }
}
