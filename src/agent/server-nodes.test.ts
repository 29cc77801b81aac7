import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { formatServer, parseServer } from './server-address.ts'
import { ServerNodes } from './server-nodes.ts'

const given = parseServer('a.example.com:7443')

function nodes(random = [0.1]) {
  let drawn = 0
  return new ServerNodes(given, () => random[drawn++ % random.length] ?? 0)
}

describe('where an agent finds its server', () => {
  test('at the configured address, if no node was announced', () => {
    assert.deepEqual(nodes().all().map(formatServer), ['a.example.com:7443'])
    assert.deepEqual(nodes().awayFrom(given).map(formatServer), ['a.example.com:7443'])
  })

  test('at the last node, then at the configured address, then at any other; elsewhere when its node stops', () => {
    const known = nodes([0.9, 0.1])
    known.isAt(parseServer('d.example.com:7443'))
    known.announced(['b.example.com:7001', '[2001:db8::1]:7002', 'a.example.com:7443'])
    const all = ['d.example.com:7443', 'a.example.com:7443', '[2001:db8::1]:7002', 'b.example.com:7001']
    assert.deepEqual(known.all().map(formatServer), all)
    const away = known.awayFrom(parseServer('b.example.com:7001')).map(formatServer)
    assert.deepEqual(away, ['a.example.com:7443', '[2001:db8::1]:7002'], 'each once')
  })

  test('last of all at the node where it has another session', () => {
    const known = nodes()
    known.isAt(given)
    known.announced(['b.example.com:7001', 'c.example.com:7002'])
    const avoiding = known.all({ avoided: given })
    assert.deepEqual(avoiding.map(formatServer), ['b.example.com:7001', 'c.example.com:7002', 'a.example.com:7443'])
    const away = known.awayFrom(given, { avoided: parseServer('b.example.com:7001') })
    assert.deepEqual(away.map(formatServer), ['c.example.com:7002', 'a.example.com:7443', 'b.example.com:7001'])
    assert.equal(known.all({ avoided: parseServer('z.example.com:1') }).length, 3, 'not one that it does not know')
  })

  test('only at addresses of the form `host:port`, and at 16 nodes at most', () => {
    const known = nodes()
    known.announced(['b.example.com', 'https://c.example.com:1', 'd.example.com:0', 'e.example.com:70000', '', 'f:1'])
    assert.deepEqual(known.all().map(formatServer), ['a.example.com:7443', 'f:1'])
    known.announced(Array.from({ length: 40 }, (_, i) => `n${i}.example.com:7443`))
    assert.equal(known.all().length, 17)
    known.announced([])
    assert.equal(known.all().length, 1)
  })
})
