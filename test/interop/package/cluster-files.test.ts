/** The files of deploy/cluster: what they name exists, and their ports, names and times match. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { BlockList } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { readSettings, type Settings } from '../../../src/server/config/read-settings.ts'
import type { Json } from '../../support/api-client.ts'
import { imageEnv } from './container-file.ts'

const FOLDER = 'deploy/cluster'
const scratch = mkdtempSync(join(tmpdir(), 'postern-cluster-files-'))
after(() => rmSync(scratch, { recursive: true }))

/** Reads settings from variables; throws for an unknown one. */
function settingsOf(env: Readonly<Record<string, string>>): Settings {
  return readSettings({ env: { ...imageEnv, ...env }, cwd: scratch, flags: {} })
}

/** The port of each listener. */
function portsOf({ apiListen, agentListen, httpListen, httpsListen, sshListen }: Settings): Record<string, number> {
  return {
    api: apiListen.port,
    agents: agentListen.port,
    http: httpListen.port,
    https: httpsListen.port,
    ssh: sshListen.port,
  }
}

/** The lines of each section of an HAProxy configuration, by its first line. */
function sectionsOf(text: string): Map<string, string[]> {
  const sections = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    if (/^\w/.test(line)) sections.set(line.trim(), [])
    else if (/^\s+[^#\s]/.test(line)) [...sections.values()].at(-1)?.push(line.trim())
  }
  return sections
}

/** Checks that the balancer serves every listener from all nodes, with a PROXY header where one is read. */
function assertBalances(text: string, settings: Settings, nodes: readonly string[]): void {
  const sections = sectionsOf(text)
  const defaults = sections.get('defaults') ?? []
  const all = portsOf(settings)
  assert.ok(defaults.includes('option httpchk GET /readyz?for=visitors'))
  assert.ok(defaults.some((line) => line.startsWith(`default-server check port ${all.api} `)))
  const { from, to } = settings.tcpPorts
  for (const [name, port] of [...Object.entries(all), ['tcp', undefined] as const]) {
    const bound = port ?? `${from}-${to}`
    assert.deepEqual(sections.get(`frontend ${name}`), [`bind :${bound}`, `default_backend ${name}`])
    const at = port === undefined ? '' : `:${port}`
    const header = name === 'api' ? '' : ' send-proxy-v2'
    const servers = nodes.map((host, i) => `server node-${i + 1} ${host}${at}${header}`)
    assert.deepEqual(sections.get(`backend ${name}`), servers)
  }
}

/** Has HAProxy check a configuration, which must not cause even a warning; skipped with a note without HAProxy. */
function assertValid(t: TestContext, text: string): void {
  const file = join(scratch, 'haproxy.cfg')
  // The names of nodes cannot be resolved here, and HAProxy would try.
  writeFileSync(file, text.replaceAll(/^( +server \S+) [^\s:]+/gm, '$1 127.0.0.1'))
  const { status, stderr, error } = spawnSync('haproxy', ['-dW', '-c', '-f', file], { encoding: 'utf8' })
  if (error) {
    t.diagnostic('left out: no haproxy on this machine that could check its configuration')
    t.skip()
    return
  }
  assert.equal(status, 0, stderr)
}

const balancer = readFileSync(`${FOLDER}/haproxy.cfg`, 'utf8')

describe('the compose file of a cluster', () => {
  const file: Json = parse(readFileSync(`${FOLDER}/compose.yml`, 'utf8'), { merge: true })
  const { services } = file
  const nodes = Object.keys(services).filter((name) => name.startsWith('node-'))
  const given = (value: string): string =>
    value
      .replaceAll(/\$\{POSTERN_DOMAIN:\?[^}]*\}/g, 'tunnels.example.com')
      .replaceAll(/\$\{POSTGRES_PASSWORD:\?[^}]*\}/g, 'password')
  const settings = nodes.map((name) => {
    const env: Record<string, string> = services[name].environment
    return settingsOf(Object.fromEntries(Object.entries(env).map(([key, value]) => [key, given(value)])))
  })

  test('has three nodes that differ only in their names', () => {
    assert.deepEqual(nodes, ['node-1', 'node-2', 'node-3'])
    const same = settings.map(({ nodeName: _name, clusterAddress: _address, ...rest }) => rest)
    for (const each of same) assert.deepEqual(each, same[0])
    for (const [i, { nodeName, clusterAddress, clusterListen }] of settings.entries()) {
      assert.deepEqual([nodeName, clusterAddress?.host], [nodes[i], nodes[i]])
      assert.equal(clusterAddress?.port, clusterListen?.port)
    }
  })

  test('has nodes that share a database and a key', () => {
    for (const [i, { databaseUrl, keyFile }] of settings.entries()) {
      assert.equal(new URL(databaseUrl).hostname, 'postgres')
      assert.deepEqual(
        services[nodes[i] ?? ''].secrets.map((name: string) => `/run/secrets/${name}`),
        [keyFile],
      )
    }
    assert.ok('secret.key' in file.secrets)
  })

  test('trusts only the balancer', () => {
    const { ipv4_address: address } = services.balancer.networks.inside
    for (const { trustedProxies } of settings) assert.deepEqual(trustedProxies, [`${address}/32`])
  })

  test('gives the address of the balancer to no container that starts before it', () => {
    const { ipv4_address: address } = services.balancer.networks.inside
    const [{ subnet, ip_range: given }] = file.networks.inside.ipam.config
    const isIn = (range: string): boolean => {
      const list = new BlockList()
      const [start = '', prefix = ''] = range.split('/')
      list.addSubnet(start, Number(prefix))
      return list.check(address)
    }
    assert.deepEqual([isIn(subnet), isIn(given)], [true, false])
  })

  test('tells agents where the balancer takes them', () => {
    for (const { agentAddress, agentListen, domain } of settings) {
      assert.deepEqual(agentAddress, { host: domain, port: agentListen.port })
    }
    assert.ok(services.balancer.ports.includes(`${settings[0]?.agentListen.port}:${settings[0]?.agentListen.port}`))
  })

  test('publishes the ports of the balancer, and no port of a node', () => {
    const [first] = settings
    assert.ok(first)
    assertBalances(balancer, first, nodes)
    const published = new Map(
      (services.balancer.ports as string[]).map((port) => port.split(':').slice(-2).reverse() as [string, string]),
    )
    const { from, to } = first.tcpPorts
    const inside = [...Object.values(portsOf(first)).map(String), `${from}-${to}`]
    assert.deepEqual([...published.keys()].sort(), inside.sort())
    assert.equal(published.get(String(first.httpsListen.port)), String(first.publicHttpsPort))
    assert.equal(published.get(String(first.httpListen.port)), String(first.publicHttpPort))
    assert.ok(services.balancer.ports.includes(`127.0.0.1:${first.apiListen.port}:${first.apiListen.port}`))
    for (const name of nodes) assert.equal(services[name].ports, undefined)
  })

  test('has nodes that are locked down and have time to drain', () => {
    for (const [i, { drainTimeoutMs }] of settings.entries()) {
      const { read_only, cap_drop, security_opt, stop_grace_period } = services[nodes[i] ?? '']
      assert.deepEqual([read_only, cap_drop, security_opt], [true, ['ALL'], ['no-new-privileges:true']])
      assert.ok(Number.parseInt(stop_grace_period, 10) * 1000 > drainTimeoutMs)
    }
  })

  test('has a balancer whose configuration HAProxy accepts', (t) => assertValid(t, balancer))
})

describe('the manifests of a cluster', () => {
  const all: Json[] = globSync(`${FOLDER}/kubernetes/*.yaml`).flatMap((file) =>
    parseAllDocuments(readFileSync(file, 'utf8')).map((document) => {
      assert.deepEqual(document.errors, [], file)
      return document.toJS()
    }),
  )
  const find = (kind: string, name = 'postern'): Json => {
    const found = all.find((each) => each.kind === kind && each.metadata.name === name)
    assert.ok(found, `${kind} ${name}`)
    return found
  }
  const nodes = find('StatefulSet')
  const { spec: pod } = nodes.spec.template
  const [container] = pod.containers
  const secret = find('Secret')
  const env: Record<string, string> = Object.fromEntries(
    (container.env as Json[])
      .filter(({ name }) => name !== 'POD_IP')
      .map(({ name, value, valueFrom }) => {
        const field: Record<string, string> = { 'metadata.name': 'postern-0' }
        const given = value ?? field[valueFrom.fieldRef?.fieldPath] ?? secret.stringData[valueFrom.secretKeyRef?.key]
        return [name, String(given).replace('$(POD_IP)', '10.1.2.3')]
      }),
  )
  // Kubernetes fills in variables that come earlier in the list.
  for (const [name, value] of Object.entries(env)) {
    env[name] = value.replaceAll(/\$\((\w+)\)/g, (all, key) => env[key] ?? all)
  }
  const settings = settingsOf(env)

  test('are all in one namespace, which they create', () => {
    const { name } = find('Namespace').metadata
    for (const { kind, metadata } of all) if (kind !== 'Namespace') assert.equal(metadata.namespace, name, kind)
  })

  test('have nodes whose settings exist, and whose ports they listen on', () => {
    assert.equal(nodes.spec.replicas, 3)
    assert.deepEqual([settings.nodeName, settings.clusterAddress], ['postern-0', { host: '10.1.2.3', port: 7444 }])
    const ports = Object.fromEntries(container.ports.map(({ name, containerPort }: Json) => [name, containerPort]))
    assert.deepEqual(ports, { ...portsOf(settings), nodes: settings.clusterListen?.port })
  })

  test('tell agents where the balancer takes them', () => {
    assert.deepEqual(settings.agentAddress, { host: settings.domain, port: settings.agentListen.port })
    const names = container.env.map(({ name }: Json) => name)
    assert.ok(names.indexOf('POSTERN_DOMAIN') < names.indexOf('POSTERN_AGENT_ADDRESS'))
  })

  test('have nodes that read the key and the database from the secret', () => {
    const [{ key, path }] = pod.volumes.find(({ name }: Json) => name === 'secrets').secret.items
    const { mountPath } = container.volumeMounts.find(({ name }: Json) => name === 'secrets')
    assert.equal(settings.keyFile, `${mountPath}/${path}`)
    assert.ok(key in secret.stringData)
    // The placeholder is not a valid key, so that no server starts with it.
    assert.notEqual(Buffer.from(secret.stringData[key], 'base64').length, 32)
  })

  test('have nodes with a readiness probe and time to drain', () => {
    assert.deepEqual(container.readinessProbe.httpGet, { path: '/readyz', port: 'api' })
    assert.deepEqual(container.livenessProbe.httpGet, { path: '/healthz', port: 'api' })
    const [sleep, seconds] = container.lifecycle.preStop.exec.command
    assert.equal(sleep, 'sleep')
    const neededMs = Number(seconds) * 1000 + settings.drainTimeoutMs
    assert.ok(pod.terminationGracePeriodSeconds * 1000 > neededMs)
  })

  test('have balancers that accept connections until they are out of the service, and then keep open ones for a while', () => {
    const { spec } = find('Deployment', 'balancer').spec.template
    const [sleep, seconds] = spec.containers[0].lifecycle.preStop.exec.command
    assert.equal(sleep, 'sleep')
    assert.ok(Number(seconds) >= 5 && spec.terminationGracePeriodSeconds - Number(seconds) >= 30)
  })

  test('keep nodes apart, and most of them running', () => {
    for (const [kind, name] of [
      ['StatefulSet', 'postern'],
      ['Deployment', 'balancer'],
    ] as const) {
      const { selector, template } = find(kind, name).spec
      assert.deepEqual(template.metadata.labels, selector.matchLabels)
      const [rule] = template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution
      assert.deepEqual(rule.labelSelector, selector)
      assert.equal(rule.topologyKey, 'kubernetes.io/hostname')
      const budget = find('PodDisruptionBudget', name).spec
      assert.deepEqual([budget.maxUnavailable, budget.selector], [1, selector])
    }
  })

  test('have nodes that are locked down', () => {
    const { readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities } = container.securityContext
    assert.deepEqual([readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities], [true, false, { drop: ['ALL'] }])
    assert.equal(pod.securityContext.runAsNonRoot, true)
    assert.equal(pod.automountServiceAccountToken, false)
  })

  test('let other nodes, and the balancer, connect to what they need', () => {
    const { ingress, podSelector } = find('NetworkPolicy').spec
    assert.deepEqual(podSelector, nodes.spec.selector)
    const [ofNodes, ofBalancer] = ingress
    assert.deepEqual(ofNodes.from, [{ podSelector: nodes.spec.selector }])
    assert.deepEqual(ofNodes.ports, [{ port: settings.clusterListen?.port }])
    assert.deepEqual(ofBalancer.from, [{ podSelector: find('Deployment', 'balancer').spec.selector }])
    const { from, to } = settings.tcpPorts
    const single = ofBalancer.ports.flatMap(({ port, endPort }: Json) => (endPort === undefined ? [port] : []))
    assert.deepEqual(new Set(single), new Set(Object.values(portsOf(settings))))
    assert.deepEqual(ofBalancer.ports.at(-1), { port: from, endPort: to })
  })

  const config: string = find('ConfigMap', 'balancer').data['haproxy.cfg']
  const hosts = [0, 1, 2].map((i) => `postern-${i}.postern.postern.svc.cluster.local`)

  test('have a balancer as in the compose file, with the names of pods', () => {
    const { metadata, spec } = find('Service')
    assert.deepEqual([metadata.name, spec.clusterIP, nodes.spec.serviceName], ['postern', 'None', 'postern'])
    assertBalances(config, settings, hosts)
    const renamed = hosts.reduce((text, host, i) => text.replaceAll(host, `node-${i + 1}`), config)
    assert.equal(renamed.trim(), balancer.trim())
  })

  test('publish every port, and keep the addresses of visitors', () => {
    const { spec } = find('Service', 'balancer')
    assert.deepEqual([spec.type, spec.externalTrafficPolicy], ['LoadBalancer', 'Local'])
    const target = new Map(spec.ports.map(({ port, targetPort = port }: Json) => [targetPort, port]))
    assert.equal(target.get(settings.httpsListen.port), settings.publicHttpsPort)
    assert.equal(target.get(settings.httpListen.port), settings.publicHttpPort)
    const { from, to } = settings.tcpPorts
    for (let port = from; port <= to; port++) assert.equal(target.get(port), port)
    for (const port of [settings.agentListen.port, settings.sshListen.port]) assert.equal(target.get(port), port)
    assert.equal(target.has(settings.apiListen.port), false, 'the API is plain HTTP')
  })

  test('have a balancer whose configuration HAProxy accepts', (t) => assertValid(t, config))
})
