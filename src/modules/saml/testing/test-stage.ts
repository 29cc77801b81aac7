/** For tests: an identity provider, a route that logs in with it, and a browser. */
import { createLog } from '../../../lib/log/create-log.ts'
import { MemorySessions } from '../../login/memory-sessions.ts'
import { type Page, TestBrowser, type Visit } from '../../login/testing/test-browser.ts'
import { request } from '../../testing/test-request.ts'
import { testTools } from '../../testing/test-tools.ts'
import type { ModuleTools } from '../../tools.ts'
import { compileSaml, type SamlSettings } from '../traffic.ts'
import { type Asked, type Facts, type Signing, TestIdp } from './test-idp.ts'

export const idp = await TestIdp.make()

export const HOST = 'app.example.com'
export const ROUTE = '/postern/saml/edghtsrt_1'

const settings: SamlSettings = {
  options_passthrough: false,
  cookie_prefix: '',
  inactivity_timeout: 0,
  maximum_duration: 0,
  idp_metadata: idp.metadata,
  idp_metadata_url: '',
  force_authn: false,
  allow_idp_initiated: false,
  authorized_groups: [],
  nameid_format: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
}

/** `later` moves the clock of the route. */
export function setUp(changed: Partial<SamlSettings> = {}, given: Partial<ModuleTools> = {}) {
  const logged: string[] = []
  let ahead = 0
  const tools = testTools({
    sessions: new MemorySessions(),
    now: () => Date.now() + ahead,
    log: createLog({ level: 'debug', format: 'json', destination: { write: (line) => logged.push(line) } }),
    ...given,
  })
  const phases = compileSaml({ ...settings, ...changed }, tools)
  const later = (ms: number): void => {
    ahead += ms
  }
  return { tools, phases, browser: new TestBrowser(phases), logged, later }
}

export type Stage = ReturnType<typeof setUp>

/** The metadata that the route serves. */
export async function metadataOf({ phases }: Pick<Stage, 'phases'>, host = HOST): Promise<string> {
  const path = `${ROUTE}/metadata`
  const verdict = await phases.request?.(request({ host, authority: host, path, target: path, reservedPath: path }))
  if (!verdict || !('respond' in verdict)) throw new Error('the route serves no metadata')
  return String(verdict.respond.body)
}

/** A stranger asks for a page, and is sent to the identity provider. */
export async function ask(stage: Stage, visit: Visit = {}): Promise<Asked> {
  const { location } = await stage.browser.visit(visit)
  return idp.read(location, await metadataOf(stage, visit.host))
}

/** The identity provider makes the browser post something. */
export function post(browser: TestBrowser, fields: Readonly<Record<string, string>>, visit: Visit = {}): Promise<Page> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const body = new URLSearchParams(fields).toString()
  return browser.visit({ path: `${ROUTE}/acs`, ...visit, method: 'POST', isCrossSite: true, headers, body })
}

export function base64(xml: string): string {
  return Buffer.from(xml).toString('base64')
}

/** Delivers an answer: by the POST, and if that redirects, by the GET after it. */
export async function deliver(browser: TestBrowser, xml: string, relayState: string, visit: Visit = {}): Promise<Page> {
  const sent = await post(browser, { SAMLResponse: base64(xml), RelayState: relayState }, visit)
  return sent.location === '' ? sent : browser.visit({ ...visit, method: 'GET', path: sent.location })
}

/** A whole login; returns the last answer. */
export async function logIn(
  stage: Stage,
  changed: Partial<Facts> = {},
  { visit = {}, signing = {} }: { visit?: Visit; signing?: Signing } = {},
): Promise<Page> {
  const asked = await ask(stage, visit)
  const { host } = visit
  const at = host === undefined ? {} : { host }
  return deliver(stage.browser, await idp.answer(asked, changed, signing), asked.relayState, at)
}
