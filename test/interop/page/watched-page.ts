/** A page in a real browser that is watched: what it logs, which origins it calls, and accessibility violations. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { type Look, looks, type PictureName, pictureFile, QUALITY, TAKEN } from './pictures.ts'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** How long the page may take for any step, in milliseconds: long enough for a busy machine. */
const PATIENCE_MS = 60_000

/** The height of the window, in pixels. */
const HEIGHT = 860

const [usual] = looks

/** Runs in the page: elements that extend beyond its right edge, if the page scrolls sideways. */
const tooWide = `document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll('main *')].filter((each) => each.getBoundingClientRect().right > innerWidth)
    .slice(0, 10).map((each) => each.outerHTML.slice(0, 100))`

export class WatchedPage {
  readonly page: Page
  readonly context: BrowserContext
  readonly #origin: string
  #look: Look = usual
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
      if (new URL(request.url()).origin !== origin) this.#faults.push(`called another origin: ${request.url()}`)
    })
  }

  /** Faults that no test allowed. */
  get faults(): readonly string[] {
    return this.#faults.filter((fault) => !this.#allowed?.test(fault))
  }

  /** Allows faults that a test causes: a browser logs every error response. */
  allowFaults(fault: RegExp): void {
    this.#allowed = fault
  }

  static async open(browser: Browser, url: string): Promise<WatchedPage> {
    const context = await browser.newContext({
      colorScheme: usual.theme,
      viewport: { width: usual.width, height: HEIGHT },
      reducedMotion: 'reduce',
    })
    context.setDefaultTimeout(PATIENCE_MS)
    const page = await context.newPage()
    const watched = new WatchedPage(page, context, new URL(url).origin)
    await page.goto(url)
    return watched
  }

  /** Another page of the same browser, signed in as the same user. */
  static async openIn({ context }: WatchedPage, url: string): Promise<WatchedPage> {
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

  /** Checks that the view is accessible in both themes and widths; keeps each look as a picture. */
  async assertGoodInAllLooks(name: PictureName): Promise<void> {
    for (const look of looks) {
      await this.#lookAs(look)
      await this.assertAccessible(`${name}, ${look.theme}, ${look.width}`)
      assert.deepEqual(await this.page.evaluate<string[]>(tooWide), [], `${name} fits into ${look.width}`)
      await this.picture(name)
    }
    await this.#lookAs(usual)
  }

  async #lookAs(look: Look): Promise<void> {
    await this.page.emulateMedia({ colorScheme: look.theme })
    await this.page.setViewportSize({ width: look.width, height: HEIGHT })
    this.#look = look
  }

  /** Saves the view as a picture of the run. */
  async picture(name: PictureName): Promise<void> {
    mkdirSync(TAKEN, { recursive: true })
    await this.page.screenshot({ path: join(TAKEN, pictureFile(name, this.#look)), type: 'webp', quality: QUALITY })
  }

  /** Asserts that axe finds no accessibility violation. */
  async assertAccessible(what: string): Promise<void> {
    // It stays until the page is reloaded.
    if (!(await this.page.evaluate<boolean>("'axe' in globalThis"))) await this.page.evaluate(axeSource)
    const violations = await this.page.evaluate(async () => {
      // Defined by the source above.
      const { axe } = globalThis as unknown as { axe: { run: () => Promise<{ violations: AxeViolation[] }> } }
      return (await axe.run()).violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
    })
    assert.deepEqual(violations, [], what)
  }

  /** Asserts that every script and style is a file of the server. */
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
