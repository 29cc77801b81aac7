/** Several agents that want the same address: one has it, visitors reach that one, and only it is listed as online. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { readAll } from '../../support/read-all.ts'
import { httpUpstream, tcpUpstream } from '../../support/upstream.ts'
import { dialTcp, exchange, visit } from '../../support/visitor.ts'
import { eachAgent, refusal } from './each-agent.ts'

/** D42: visitors of a tunnel that is closed may stay for the drain time, which must be longer than the next one takes. */
const options = { flags: { 'drain-timeout': '10m' } }

eachAgent((stage, test) => {
  for (const what of ['name', 'port'] as const) {
    test(`of agents that request one ${what} at the same moment, one gets it`, async (t) => {
      const remote_addr = `localhost:${stage.tcpPort()}`
      const asked = what === 'name' ? { domain: 'race.example.com' } : { proto: 'tcp' as const, remote_addr }
      const agents = await Promise.all([1, 2, 3].map(() => stage.connect(t)))
      const bind = (i: number) => agents[i % agents.length]?.open({ addr: 1, ...asked }) ?? assert.fail()
      const outcomes = await Promise.allSettled(Array.from({ length: 9 }, (_, i) => bind(i)))
      const won = outcomes.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
      const lost = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []))
      assert.equal(won.length, 1)
      for (const error of lost) assert.ok(refusal(334)(error))
      const { tunnels } = await stage.platform.admin.get('/tunnels')
      assert.equal(tunnels.length, 1)
      assert.equal(won[0]?.url, tunnels[0].public_url)
      await won[0]?.close()
    })
  }

  test('a visitor that stays connected follows a name from one agent to the next', async (t) => {
    const [one, two] = [await stage.connect(t), await stage.connect(t)]
    const serve = async (text: string) => (await httpUpstream(t, (_, response) => response.end(text))).address
    const domain = 'moving.example.com'
    const first = await one.open({ addr: await serve('one'), domain })
    const { hostname, port, host } = new URL(first.url)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.after(() => agent.destroy())
    const sockets = new Set<unknown>()
    const ask = async (): Promise<string> => {
      const to = { host: '127.0.0.1', port, servername: hostname, ca: stage.platform.ca, agent, headers: { host } }
      const asked = request(to).end()
      const [response] = (await once(asked, 'response')) as [IncomingMessage]
      sockets.add(asked.socket)
      return `${response.statusCode} ${(await readAll(response)).toString()}`
    }
    assert.equal(await ask(), '200 one')
    await first.close()
    assert.match(await ask(), /^404 /)
    const second = await two.open({ addr: await serve('two'), domain })
    assert.equal(await ask(), '200 two')
    await second.close()
    const third = await one.open({ addr: await serve('three'), domain })
    assert.equal(await ask(), '200 three')
    await third.close()
    assert.equal(sockets.size, 1)
  })

  test('an edge cannot take the name of an online tunnel until the tunnel is closed', async (t) => {
    const { admin } = stage.platform
    const { address } = await httpUpstream(t, (_, response) => response.end('the agent'))
    const tunnel = await stage.open(t, { addr: address, domain: 'claimed.example.com' })
    const body = { hostports: ['claimed.example.com:443'] }
    await admin.refused('ERR_HOSTPORT_SERVED_BY_AGENT', 'POST', '/edges/https', { body })
    assert.equal((await visit(tunnel.url, stage.platform)).text, 'the agent')
    await tunnel.close()
    const { id } = await admin.create('/edges/https', body)
    await assert.rejects(stage.open(t, { addr: address, domain: 'claimed.example.com' }), refusal(381))
    await admin.delete(`/edges/https/${id}`)
    const again = await stage.open(t, { addr: address, domain: 'claimed.example.com' })
    assert.equal((await visit(again.url, stage.platform)).text, 'the agent')
  })

  test('an edge cannot take the port of an online tunnel until the tunnel is closed', async (t) => {
    const { admin } = stage.platform
    const { address } = await tcpUpstream(t)
    const tunnel = await stage.open(t, { proto: 'tcp', addr: address })
    const { host } = new URL(tunnel.url)
    await admin.refused('ERR_HOSTPORT_SERVED_BY_AGENT', 'POST', '/edges/tcp', { body: { hostports: [host] } })
    assert.equal(await exchange(await dialTcp(tunnel.url), 'mine'), 'mine')
    await tunnel.close()
    const { id } = await admin.create('/edges/tcp', { hostports: [host] })
    await assert.rejects(stage.open(t, { proto: 'tcp', addr: address, remote_addr: host }), refusal(381))
    await admin.delete(`/edges/tcp/${id}`)
    const again = await stage.open(t, { proto: 'tcp', addr: address, remote_addr: host })
    assert.equal(await exchange(await dialTcp(again.url), 'mine again'), 'mine again')
  })
}, options)
