import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hostNodeName, type Interfaces, machineAddress, reachedAt } from './own-address.ts'

type Family = 'IPv4' | 'IPv6'

function interfaces(...addresses: readonly [address: string, family: Family, internal?: boolean][]): Interfaces {
  const all = addresses.map(([address, family, internal = false]) => {
    const common = { address, netmask: '', mac: '', internal, cidr: null }
    return family === 'IPv4' ? { ...common, family } : { ...common, family, scopeid: 0 }
  })
  return { eth0: all }
}

const machines: readonly [what: string, interfaces: Interfaces, address: string][] = [
  ['IPv4 first', interfaces(['2001:db8::1', 'IPv6'], ['192.0.2.1', 'IPv4'], ['192.0.2.2', 'IPv4']), '192.0.2.1'],
  ['else IPv6', interfaces(['fe80::1', 'IPv6'], ['2001:db8::1', 'IPv6']), '2001:db8::1'],
  ['not loopback', interfaces(['127.0.0.1', 'IPv4', true], ['192.0.2.1', 'IPv4']), '192.0.2.1'],
  ['loopback where there is nothing else', interfaces(['::1', 'IPv6', true], ['fe80::1', 'IPv6']), '127.0.0.1'],
  ['loopback without any interface', {}, '127.0.0.1'],
]
for (const [what, given, address] of machines) {
  test(`the address of a machine: ${what}`, () => assert.equal(machineAddress(given), address))
}

test('a listener at one address is reached there, one at every address at that of the machine', () => {
  assert.deepEqual(reachedAt({ host: '10.0.0.5', port: 1 }, '192.0.2.1'), { host: '10.0.0.5', port: 1 })
  for (const host of ['0.0.0.0', '::']) {
    assert.deepEqual(reachedAt({ host, port: 0 }, '192.0.2.1'), { host: '192.0.2.1', port: 0 })
  }
})

const names: readonly [host: string, name: string][] = [
  ['web-1.example.com', 'web-1.example.com'],
  ['Büro PC', 'B-ro-PC'],
  ['a'.repeat(64), 'a'.repeat(63)],
  ['', 'node'],
]
for (const [host, name] of names) {
  test(`a host called ${JSON.stringify(host)} is the node ${name}`, () => assert.equal(hostNodeName(host), name))
}
