import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outboundRules } from './outbound-rules.ts'
import { ownListeners } from './own-listeners.ts'

const own = ownListeners({ control: [7400], visitors: [8443], range: { from: 20_000, to: 20_010 } }, () => [
  '203.0.113.7',
])
const mayReach = outboundRules(
  [
    { network: '10.0.0.0/8' },
    { network: '127.0.0.0/8' },
    { network: '127.0.0.1/32', port: 20_001 },
    { network: 'fd00::/8', port: 443 },
    { name: 'id.example.com', port: 8443 },
    { name: 'api.example.com', port: 7400 },
    { name: 'lan.example.com', port: 9000 },
  ],
  own,
)

const targets: readonly [what: string, target: readonly [host: string, address: string, port: number], may: boolean][] =
  [
    ['a public address', ['a.example', '192.0.1.1', 443], true],
    ['a private one in an allowed network', ['a.example', '10.1.2.3', 1], true],
    ['another private one', ['a.example', '192.168.1.1', 443], false],
    ['a service of this machine in an allowed network', ['127.0.0.1', '127.0.0.1', 9000], true],
    ['a network with a port', ['a.example', 'fd00::1', 443], true],
    ['that network at another port', ['a.example', 'fd00::1', 444], false],
    ['a name with a port, at any address', ['lan.example.com', '192.168.1.1', 9000], true],
    ['the same as the root writes it', ['lan.example.com.', '192.168.1.1', 9000], true],
    ['that name at another port', ['lan.example.com', '192.168.1.1', 9001], false],
    ['a name below it', ['a.lan.example.com', '192.168.1.1', 9000], false],
    ['our visitors in an allowed network', ['127.0.0.1', '127.0.0.1', 8443], false],
    ['our visitors by address and port', ['127.0.0.1', '127.0.0.1', 20_001], true],
    ['our visitors by name and port', ['id.example.com', '203.0.113.7', 8443], true],
    ['our visitors by another name', ['a.example', '203.0.113.7', 8443], false],
    ['our API by network', ['127.0.0.1', '127.0.0.1', 7400], false],
    ['our API by name and port', ['api.example.com', '203.0.113.7', 7400], false],
  ]
for (const [what, [host, address, port], may] of targets) {
  test(`requests to ${what} are ${may ? 'sent' : 'refused'}`, () => {
    assert.equal(mayReach({ host, address, port }), may)
  })
}
