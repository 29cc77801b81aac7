import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { AgentTcpPorts } from './agent-tcp-ports.ts'
import { BindRefusal, type EndpointRequest } from './interfaces.ts'
import { requestedAddress } from './requested-address.ts'

const around = {
  domain: 'example.test',
  tcpPorts: new AgentTcpPorts({ from: 20_000, to: 20_009 }, randomBytes),
  publicPorts: () => ({ http: 8080, https: 8443 }),
}

type Row = [proto: EndpointRequest['proto'], opts: Record<string, unknown>, expected: string | number | undefined]

/** A host, `host:port`, the number of the refusal, or undefined when the server chooses. */
const rows: Row[] = [
  ['https', {}, undefined],
  ['https', { URL: '', Domain: '', Hostname: '', Subdomain: '' }, undefined],
  ['https', { Domain: 'App.Example.COM.' }, 'app.example.com'],
  ['https', { Hostname: 'app.example.com' }, 'app.example.com'],
  ['https', { hostname: 'app.example.com' }, 'app.example.com'],
  ['https', { Subdomain: 'app' }, 'app.example.test'],
  ['https', { Subdomain: 'a.b' }, 'a.b.example.test'],
  ['https', { URL: 'https://a.example.com', Domain: 'b.example.com', Hostname: 'c.example.com' }, 'a.example.com'],
  ['https', { Domain: 'b.example.com', Hostname: 'c.example.com', Subdomain: 'd' }, 'b.example.com'],
  ['https', { URL: 'a.example.com' }, 'a.example.com'],
  ['https', { URL: 'HTTPS://a.example.com/' }, 'a.example.com'],
  ['https', { URL: 'https://' }, undefined],
  ['https', { URL: 'https://a.example.com:443' }, 'a.example.com'],
  ['https', { URL: 'https://a.example.com:8443' }, 'a.example.com'],
  ['https', { URL: 'https://a.example.com:8080' }, 301],
  ['http', { URL: 'http://a.example.com:8080' }, 'a.example.com'],
  ['http', { URL: 'http://a.example.com:80' }, 'a.example.com'],
  ['http', { URL: 'https://a.example.com' }, 301],
  ['tls', { URL: 'tls://a.example.com:443' }, 'a.example.com'],
  ['tls', { Domain: 'a.example.com' }, 'a.example.com'],
  ['https', { Domain: '*.example.com' }, '*.example.com'],
  ['https', { Domain: 'bücher.example' }, 'xn--bcher-kva.example'],
  ['https', { Domain: 'anything-at-all' }, 'anything-at-all'],
  ['https', { URL: 'https://app.internal' }, 331],
  ['tls', { Domain: '*.APP.internal.' }, 331],
  ['tcp', { URL: 'tcp://app.internal:20001' }, 331],

  ['https', { Domain: '1.21 gigawatts' }, 326],
  ['https', { Domain: 'a/b' }, 326],
  ['https', { Domain: 'user@example.com' }, 326],
  ['https', { URL: 'https://user@example.com' }, 9037],
  ['https', { URL: 'https://a_b.example.com' }, 355],
  ['https', { Domain: '192.0.2.1' }, 326],
  ['https', { Domain: 'a.*.com' }, 326],
  ['https', { Domain: 'a*.com' }, 326],
  ['https', { Domain: 'a\nb.com' }, 326],
  ['https', { Domain: 'a..com' }, 327],
  ['https', { Domain: '.com' }, 327],
  ['https', { Domain: '-a.com' }, 328],
  ['https', { Domain: 'a-.com' }, 329],
  ['https', { Domain: 'ab--c.com' }, 330],
  ['https', { Domain: 'xn--.com' }, 329],
  ['https', { Domain: 'a_b.com' }, 355],
  ['https', { Domain: `${'a'.repeat(64)}.com` }, 396],
  ['https', { Domain: `${'a.'.repeat(130)}com` }, 397],
  ['https', { Domain: 'a'.repeat(100_000) }, 397],
  ['https', { Subdomain: 'a b' }, 326],

  ['tcp', {}, undefined],
  ['tcp', { Addr: '' }, undefined],
  ['tcp', { URL: 'tcp://' }, undefined],
  ['tcp', { Addr: 'example.test:0' }, undefined],
  ['tcp', { Addr: 'example.test:20001' }, 'example.test:20001'],
  ['tcp', { Addr: '1.TCP.example.com:20001' }, '1.tcp.example.com:20001'],
  ['tcp', { Addr: ':20001' }, 'example.test:20001'],
  ['tcp', { Addr: '20001' }, 'example.test:20001'],
  ['tcp', { URL: 'tcp://other.example:20002' }, 'other.example:20002'],
  ['tcp', { URL: 'tcp://[::1]:20002' }, '[::1]:20002'],
  ['tcp', { Addr: 'example.test' }, 301],
  ['tcp', { Addr: 'example.test:port' }, 301],
  ['tcp', { Addr: 'example.test:22' }, 307],
  ['tcp', { Addr: 'example.test:20010' }, 307],
  ['tcp', { Addr: 'example.test:99999' }, 307],
  ['tcp', { Addr: 'a b:20001' }, 326],
  ['tcp', { Addr: '*.example.test:20001' }, 326],
  ['tcp', { Addr: 'a_b.com:20001' }, 355],
  ['tcp', { Domain: 'ignored.example.com' }, undefined],
]

describe('a bind', () => {
  for (const [proto, opts, expected] of rows) {
    const shown = JSON.stringify(opts)
    test(`of ${proto} with ${shown.length > 100 ? `${shown.slice(0, 100)}…` : shown} asks for ${expected}`, () => {
      const found = requestedAddress(proto, opts, around)
      if (found instanceof BindRefusal) {
        assert.equal(found.ngrok, expected)
        assert.match(found.message, /^[A-Z].*\.$/)
        assert.ok(found.message.length < 400, found.message)
      } else {
        assert.equal(found && (found.port === undefined ? found.host : `${found.host}:${found.port}`), expected)
      }
    })
  }
})

test('a server whose own domain is internal may have internal names', () => {
  const found = requestedAddress('https', { Domain: 'app.corp.internal' }, { ...around, domain: 'corp.internal' })
  assert.deepEqual(found, { host: 'app.corp.internal', port: undefined })
})
