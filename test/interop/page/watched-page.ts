/** A page in a real browser that is watched: what it logs, whom it asks, what a screen reader would stumble over. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'

const PICTURES = join(import.meta.dirname, 'pictures')

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** How long the page may take for anything, in milliseconds: long enough for a busy machine. */
const PATIENCE_MS = 60_000

export interface Look {
  readonly theme: 'light' | 'dark'
  readonly width: number
}

export const looks: readonly Look[] = [
  { theme: 'light', width: 1280 },
  { theme: 'dark', width: 1280 },
  { theme: 'light', width: 390 },
  { theme: 'dark', width: 390 },
]

export class WatchedPage {
  readonly page: Page
  readonly context: BrowserContext
  readonly #origin: string
  #allowed: RegExp | undefined
  readonly #faults: string[] = []

  private constructor(page: Page, context: BrowserContext, origin: string) {
    this.page = page
    this.context = context
    this.#origin = origin
    page.on('console', (message) => {
      if (message.type() === 'error') this.#faults.push(`console: ${message.text()}`)
    })
    page.on('pageerror', (error) => this.#faults.push(`error: ${error.message}`))
    page.on('request', (request) => {
      if (new URL(request.url()).origin !== origin) this.#faults.push(`asked another origin: ${request.url()}`)
    })
  }

  /** What went wrong and no test asked for. */
  get faults(): readonly string[] {
    return this.#faults.filter((fault) => !this.#allowed?.test(fault))
  }

  /** A browser logs every answer that is an error, also those that a test asks for. */
  allowFaults(fault: RegExp): void {
    this.#allowed = fault
  }

  static async open(browser: Browser, url: string, look: Look = { theme: 'light', width: 1280 }): Promise<WatchedPage> {
    const context = await browser.newContext({
      colorScheme: look.theme,
      viewport: { width: look.width, height: 860 },
      reducedMotion: 'reduce',
    })
    context.setDefaultTimeout(PATIENCE_MS)
    const page = await context.newPage()
    const watched = new WatchedPage(page, context, new URL(url).origin)
    await page.goto(url)
    return watched
  }

  async signIn(apiKey: string): Promise<void> {
    await this.page.getByLabel('API key').fill(apiKey)
    await this.page.getByRole('button', { name: 'Sign in' }).click()
    await this.page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  }

  /** Goes to a place of the page and waits for its title. */
  async goTo(path: string, title: string | RegExp): Promise<void> {
    await this.page.goto(`${this.#origin}/#${path}`)
    await this.page.getByRole('heading', { name: title, level: 1 }).waitFor()
  }

  async look({ theme, width }: Look): Promise<void> {
    await this.page.emulateMedia({ colorScheme: theme })
    await this.page.setViewportSize({ width, height: 860 })
  }

  /** Keeps what is seen as a file of the run. */
  async picture(name: string): Promise<void> {
    mkdirSync(PICTURES, { recursive: true })
    await this.page.screenshot({ path: join(PICTURES, `${name}.png`) })
  }

  /** Nothing that axe knows of keeps anybody out. */
  async assertAccessible(what: string): Promise<void> {
    await this.page.evaluate(axeSource)
    const violations = await this.page.evaluate(async () => {
      // What the source above defines.
      const { axe } = globalThis as unknown as { axe: { run: () => Promise<{ violations: AxeViolation[] }> } }
      return (await axe.run()).violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
    })
    assert.deepEqual(violations, [], what)
  }

  /** Every script and style is a file of the server. */
  async assertNothingInline(): Promise<void> {
    const inline = this.page.locator('script:not([src]), style, [style*="url("], [onclick], [onerror], [onload]')
    assert.deepEqual(await inline.evaluateAll((found) => found.map((each) => each.outerHTML)), [])
  }

  async close(): Promise<void> {
    await this.context.close()
  }
}

interface AxeViolation {
  readonly id: string
  readonly nodes: readonly { readonly html: string }[]
}
