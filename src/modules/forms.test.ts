import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../lib/shape/check.ts'
import { Type } from '../lib/shape/type.ts'
import { moduleConflicts, modules, modulesAt } from './forms.ts'
import { defineModule, type ModuleConfig, type Place } from './module.ts'

test('each place has its modules, in the order of execution', () => {
  const names = (place: Place): string[] => modulesAt(place).map((module) => module.name)
  assert.deepEqual(names('tcp'), ['ip_restriction', 'policy', 'backend'])
  assert.deepEqual(names('tls'), ['tls_termination', 'mutual_tls', 'ip_restriction', 'policy', 'backend'])
  assert.deepEqual(names('https'), ['tls_termination', 'mutual_tls'])
  assert.deepEqual(names('route'), [
    'response_headers',
    'compression',
    'ip_restriction',
    'user_agent_filter',
    'webhook_verification',
    'oauth',
    'oidc',
    'saml',
    'websocket_tcp_converter',
    'policy',
    'circuit_breaker',
    'request_headers',
    'backend',
  ])
})

test('every form is closed, describes its fields and is enabled by default', () => {
  for (const module of modules) {
    for (const [place, form] of Object.entries(module.at)) {
      const at = `${module.name} at ${place}`
      assert.equal((form as { additionalProperties?: unknown }).additionalProperties, false, at)
      for (const [name, field] of Object.entries(form.properties)) {
        assert.equal(typeof (field as { description?: unknown }).description, 'string', `${at}: ${name}`)
      }
      assert.equal((form.properties.enabled as { default?: unknown }).default, true, at)
    }
  }
})

test('a form without `enabled` does not compile', () => {
  const at = { route: Type.Object({}) }
  // @ts-expect-error edges would skip a module with this form
  defineModule({ name: 'never', about: '', at, needs: () => 'http', resolve: () => ({}) })
})

const ids = { ip_restriction: 'ip_policy_ids', mutual_tls: 'certificate_authority_ids' }

for (const [name, field] of Object.entries(ids)) {
  test(`${name} needs at least one id, and each once`, () => {
    const module = modules.find((each) => each.name === name)
    const form = module?.at.tls
    assert.ok(form && module.accept)
    assert.throws(() => check(form, {}), { field, kind: 'required' })
    assert.throws(() => check(form, { [field]: [] }), { field, kind: 'value' })
    const config = check(form, { [field]: ['x', 'y', 'x'] }) as ModuleConfig
    assert.throws(() => module.accept?.(config, { place: 'tls', at: '' }), { field: `${field}[2]` })
  })
}

test('an http response backend serves routes only', () => {
  const backend = modules.find((each) => each.name === 'backend')
  assert.ok(backend?.reference?.kinds('route').includes('http_response_backend'))
  for (const place of ['tcp', 'tls'] as const) {
    assert.ok(!backend?.reference?.kinds(place).includes('http_response_backend'))
  }
})

const upstream = { enabled: true, terminate_at: 'upstream' }
const mutual = { enabled: true, certificate_authority_ids: ['ca_x'] }

/** A policy that reads what only an edge that ends TLS can know. */
const reader: ModuleConfig = {
  enabled: true,
  inbound: [{ name: '', expressions: ["conn.tls.version == '1.3'"], actions: [{ type: 'deny' }] }],
}

test('with TLS ending upstream, modules that look inside the traffic are refused by name', () => {
  const configs = new Map<string, ModuleConfig>(Object.entries({ tls_termination: upstream, mutual_tls: mutual }))
  assert.throws(() => moduleConflicts('tls', configs), {
    code: 'MODULE_NEEDS_TERMINATION',
    message: /need: `mutual_tls`; set `tls_termination.terminate_at` to `edge`/,
  })
})

test('without tls_termination, modules that look inside the traffic are refused too', () => {
  assert.throws(() => moduleConflicts('tls', new Map(Object.entries({ policy: reader }))), {
    code: 'MODULE_NEEDS_TERMINATION',
    message: /need: `policy`/,
  })
})

const [on, off] = [{ enabled: true }, { enabled: false }]

test('two ways to log in on one route are refused by name', () => {
  const several: Record<string, ModuleConfig>[] = [
    { oauth: on, oidc: on },
    { oidc: on, saml: on },
    { oauth: on, saml: on, oidc: off },
    { oauth: on, saml: on, oidc: on },
  ]
  for (const configs of several) {
    const names = Object.keys(configs).filter((name) => configs[name]?.enabled)
    assert.throws(
      () => moduleConflicts('route', new Map(Object.entries(configs))),
      ({ code, message }: Error & { code: string }) => {
        assert.equal(code, 'SEVERAL_LOGINS')
        const [, reported = ''] = /these would be: (.*); disable or delete/.exec(message) ?? []
        assert.deepEqual(reported.split(', ').sort(), names.map((name) => `\`${name}\``).sort())
        return true
      },
    )
  }
})

const logging = (type: string, enabled = true): ModuleConfig => ({ enabled, inbound: [{ actions: [{ type }] }] })

test('a route logs visitors in by a module or by a rule, not by both', () => {
  for (const login of ['oauth', 'oidc', 'saml']) {
    for (const type of ['oauth', 'openid-connect']) {
      const configs = new Map([
        [login, on],
        ['policy', logging(type)],
      ])
      assert.throws(() => moduleConflicts('route', configs), { code: 'SEVERAL_LOGINS' })
      moduleConflicts('route', new Map([...configs, ['policy', logging(type, false)]]))
      moduleConflicts('route', new Map([...configs, [login, off]]))
    }
    moduleConflicts('route', new Map(Object.entries({ [login]: on, policy: logging('deny') })))
  }
})

const allowed: Record<string, [Place, Record<string, ModuleConfig>]> = {
  'one way to log in, and others that are disabled': ['route', { oauth: off, oidc: on, saml: off }],
  'ways to log in that are all disabled': ['route', { oauth: off, oidc: off, saml: off }],
  'modules of the connection alone': [
    'tls',
    {
      tls_termination: upstream,
      backend: { enabled: true, backend_id: 'bkdtg_x' },
      ip_restriction: { enabled: true, ip_policy_ids: ['ipp_x'] },
    },
  ],
  'a disabled module': ['tls', { tls_termination: upstream, mutual_tls: { ...mutual, enabled: false } }],
  'TLS ending at the edge': ['tls', { tls_termination: { ...upstream, terminate_at: 'edge' }, mutual_tls: mutual }],
  'a disabled tls_termination': ['tls', { tls_termination: { ...upstream, enabled: false }, mutual_tls: mutual }],
  'no tls_termination, but mutual TLS, which makes TLS end at the edge': [
    'tls',
    { mutual_tls: mutual, policy: reader },
  ],
  'an HTTPS edge': ['https', { tls_termination: { enabled: true, terminate_at: 'edge' }, mutual_tls: mutual }],
}

for (const [what, [place, configs]] of Object.entries(allowed)) {
  test(`no conflict: ${what}`, () => moduleConflicts(place, new Map(Object.entries(configs))))
}
