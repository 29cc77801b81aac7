/** For tests: a provider, a route that logs in with it, and a browser. */
import { createLog } from '../../../lib/log/create-log.ts'
import { MemorySessions } from '../../login/memory-sessions.ts'
import { type Page, TestBrowser, type Visit } from '../../login/testing/test-browser.ts'
import { testTools } from '../../testing/test-tools.ts'
import { compileOidc, type OidcSettings } from '../traffic.ts'
import { CLIENT, ISSUER, newKey, TestProvider } from './test-provider.ts'

const key = await newKey()
const tools = testTools()

export const settings: OidcSettings = {
  options_passthrough: false,
  cookie_prefix: '',
  inactivity_timeout: 0,
  maximum_duration: 0,
  issuer: ISSUER,
  ...CLIENT,
  scopes: [],
}

/** `later` moves the clock of the route. */
export function setUp(changed: Partial<OidcSettings> = {}) {
  const provider = new TestProvider(key)
  const logged: string[] = []
  let ahead = 0
  const own = {
    ...tools,
    sessions: new MemorySessions(),
    fetch: provider.fetch,
    now: () => Date.now() + ahead,
    log: createLog({ level: 'debug', format: 'json', destination: { write: (line) => logged.push(line) } }),
  }
  const phases = compileOidc({ ...settings, ...changed }, own)
  const later = (ms: number): void => {
    ahead += ms
  }
  return { provider, tools: own, phases, browser: new TestBrowser(phases), logged, later }
}

/** A stranger asks for a page, logs in, and comes back; returns the last answer. */
export async function logIn(browser: TestBrowser, provider: TestProvider, visit: Visit = {}): Promise<Page> {
  const { location } = await browser.visit(visit)
  return browser.visit({ ...visit, method: 'GET', path: provider.authorize(location) })
}
