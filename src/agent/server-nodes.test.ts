import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { AgentFault } from './fault.ts'
import { formatServer, parseServer } from './server-address.ts'
import { connectFirst, ServerNodes } from './server-nodes.ts'

const given = parseServer('a.example.com:7443')

function nodes(random = [0.1]) {
  let drawn = 0
  return new ServerNodes(given, () => random[drawn++ % random.length] ?? 0)
}

describe('where an agent finds its server', () => {
  test('at the address it was given, when it was told of no node', () => {
    assert.deepEqual(nodes().all.map(formatServer), ['a.example.com:7443'])
    assert.deepEqual(nodes().awayFrom(given).map(formatServer), ['a.example.com:7443'])
  })

  test('at the given address first, and then at any other; elsewhere first when its node stops', () => {
    const known = nodes([0.9, 0.1])
    known.isAt(parseServer('d.example.com:7443'))
    known.told(['b.example.com:7001', '[2001:db8::1]:7002', 'a.example.com:7443'])
    const all = ['a.example.com:7443', '[2001:db8::1]:7002', 'b.example.com:7001', 'd.example.com:7443']
    assert.deepEqual(known.all.map(formatServer), all)
    const away = known.awayFrom(parseServer('b.example.com:7001')).map(formatServer)
    assert.deepEqual(away, ['a.example.com:7443', '[2001:db8::1]:7002'], 'each once')
  })

  test('nowhere that is not `host:port`, and at 16 nodes at most', () => {
    const known = nodes()
    known.told(['b.example.com', 'https://c.example.com:1', 'd.example.com:0', 'e.example.com:70000', '', 'f:1'])
    assert.deepEqual(known.all.map(formatServer), ['a.example.com:7443', 'f:1'])
    known.told(Array.from({ length: 40 }, (_, i) => `n${i}.example.com:7443`))
    assert.equal(known.all.length, 17)
    known.told([])
    assert.equal(known.all.length, 1)
  })
})

describe('connecting at the first of several', () => {
  const servers = ['a:1', 'b:1', 'c:1'].map(parseServer)
  const refused = (code: string) => new AgentFault('refused', 'no', { serverCode: code })
  const faults = {
    away: new AgentFault('unreachable', 'away'),
    'shutting down': refused('ERR_NGROK_803'),
    unknown: new AgentFault('untrusted', 'unknown'),
  }
  for (const [name, fault] of Object.entries(faults)) {
    test(`goes on where the first is ${name}`, async () => {
      const asked: string[] = []
      const host = await connectFirst(servers, async (server) => {
        asked.push(server.host)
        if (server.host === 'a') throw fault
        return server.host
      })
      assert.deepEqual([host, asked], ['b', ['a', 'b']])
    })
  }

  test('ends where an authtoken is refused for good', async () => {
    const asked: string[] = []
    const connect = async ({ host }: { readonly host: string }): Promise<never> => {
      asked.push(host)
      throw refused('ERR_NGROK_105')
    }
    await assert.rejects(connectFirst(servers, connect), { serverCode: 'ERR_NGROK_105' })
    assert.deepEqual(asked, ['a'])
  })

  test('tells of the first when all fail', async () => {
    const connect = ({ host }: { readonly host: string }): Promise<never> =>
      Promise.reject(new AgentFault('unreachable', host))
    await assert.rejects(connectFirst(servers, connect), { message: 'a' })
  })
})
