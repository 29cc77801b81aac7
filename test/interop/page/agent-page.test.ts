/** The agent's page in a real browser: from the first start to a replay beside the first answer, and in outages. */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { after, before, test } from 'node:test'
import { brotliCompressSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { type AgentProcess, startAgent } from '../../support/agent-process.ts'
import type { TestChromium } from '../../support/browser.ts'
import { portToKeep } from '../../support/free-port.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, type Owner } from '../../support/upstream.ts'
import { type Ask, beginVisit, visit } from '../../support/visitor.ts'
import { echoMessages, WebSocketVisitor } from '../../support/websocket.ts'
import { withBrowser } from './browser-suite.ts'
import { WatchedPage } from './watched-page.ts'

const HOSTILE = '<img src=x onerror=alert(1)>\u202e</script><b>'

/** The maximum size of the first view uncompressed, in bytes. */
const MAX_FIRST_VIEW = 150_000

/** Runs in the page: the URLs of all files that it has loaded, and its own. */
const loadedFiles = `[location.href, ...performance.getEntriesByType('resource')
  .filter(({ initiatorType }) => ['script', 'link', 'css', 'img'].includes(initiatorType)).map(({ name }) => name)]`

/** The service behind the agent. */
class TestService {
  #count = 0
  /** The answer of `/events`, while a visitor waits for more. */
  events: ServerResponse | undefined

  answer(request: IncomingMessage, response: ServerResponse): void {
    const path = new URL(request.url ?? '/', 'http://x').pathname
    if (path === '/bytes') response.end(Buffer.of(0, 1, 2, 255))
    else if (path === '/packed')
      response.setHeader('content-encoding', 'br').end(brotliCompressSync('{"packed":"<b>"}'))
    else if (path === '/long') response.end('x'.repeat(2_000_000))
    else if (path === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      this.events = response
    } else void this.#tell(request, response, path)
  }

  async #tell(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const { method, url } = request
    const body = String(Buffer.concat(await request.toArray()))
    const value = path === '/count' ? { same: 'yes', count: ++this.#count } : { method, url, body }
    response.setHeader('content-type', 'application/json').end(JSON.stringify(value))
  }
}

await withBrowser("the agent's page in a real browser", suite)

function suite(chromium: TestChromium): void {
  let platform: Platform
  let browser: Browser
  let shown: WatchedPage
  let page: Page
  let agent: AgentProcess
  let url: string
  let startOver: () => Promise<AgentProcess>
  const service = new TestService()
  const closers: (() => unknown)[] = []
  const owner: Owner = { after: (close) => closers.push(close) }

  before(async () => {
    platform = await startPlatform()
    browser = await chromium.launch({ names: 'MAP evil.example.com 127.0.0.1' })
    const { address } = await httpUpstream(owner, (...given) => service.answer(...given), echoMessages)
    const port = await portToKeep()
    url = `http://127.0.0.1:${port}/`
    startOver = () =>
      startAgent(owner, {
        server: platform.agents,
        caFile: platform.caFile,
        authtoken: platform.authtoken,
        inspectListen: `127.0.0.1:${port}`,
        tunnels: {
          web: { proto: 'http', addr: address, domain: 'hello.localhost' },
          group: { addr: address, labels: ['app=shop'] },
        },
      })
    agent = await startOver()
  })
  after(async () => {
    for (const close of closers.reverse()) await close()
    await browser?.close()
    await platform?.stop()
    await chromium.close()
  })

  const publicUrl = () => `https://hello.localhost:${platform.httpsPort}`
  const visitor = (ask: Ask) => visit(publicUrl(), { ca: platform.ca }, ask)
  const button = (name: string | RegExp) => page.getByRole('button', { name })
  const openExchange = async (path: RegExp) => {
    await shown.goTo('/traffic', 'Traffic')
    await page.getByRole('link', { name: path }).first().click()
    await page.getByRole('heading', { name: path, level: 1 }).waitFor()
  }
  test('the first view is small, and shows the address; the first request appears without a reload', async () => {
    shown = await WatchedPage.open(browser, url)
    page = shown.page
    await page.getByText('No requests yet').waitFor()
    let bytes = 0
    for (const file of await page.evaluate<string[]>(loadedFiles)) bytes += (await (await fetch(file)).blob()).size
    assert.ok(bytes > 10_000 && bytes < MAX_FIRST_VIEW, `${bytes} bytes`)
    await page.getByRole('link', { name: publicUrl() }).waitFor()
    assert.equal(await page.locator('.empty li').count(), 1)
    await shown.assertNothingInline()
    await shown.assertAccessible('the first start')
    await shown.picture('agent-first-start')
    await visitor({ path: '/first?x=1' })
    await page.getByRole('link', { name: /GET \/first/ }).waitFor()
    await page.locator('.is-live').waitFor()
    await shown.assertGoodInAllLooks('agent-traffic')
  })

  test('heads and bodies are shown: JSON line by line, bytes in hex, hostile content as text', async () => {
    await visitor({ path: '/echo', method: 'POST', headers: { 'x-note': '<i>hi</i>' }, body: HOSTILE })
    await openExchange(/POST \/echo/)
    await page.getByText('‹U+202E›').first().waitFor()
    await page.getByText('"method": "POST"').waitFor()
    assert.equal(await page.locator('main img, main b, main i').count(), 0)
    await shown.assertAccessible('an exchange')
    await visitor({ path: '/bytes' })
    await openExchange(/GET \/bytes/)
    await page.getByText('00000000  00 01 02 ff').waitFor()
    await shown.assertGoodInAllLooks('agent-bytes')
    await visitor({ path: '/packed' })
    await openExchange(/GET \/packed/)
    await page.getByText('"packed": "<b>"').waitFor()
    await page.getByText('br, decompressed to 16 B').waitFor()
    await visitor({ path: '/long' })
    await openExchange(/GET \/long/)
    await page.getByText('2.0 MB, only the first 1.0 MB kept').waitFor()
    await button(/more characters/).click()
    // The line is a megabyte long, and is drawn piece by piece.
    await button(/943,576 more characters/).waitFor()
  })

  test('frames of a WebSocket and events of a stream appear as they come', async () => {
    const socket = await WebSocketVisitor.open(publicUrl(), { ca: platform.ca }, '/socket')
    await openExchange(/GET \/socket/)
    socket.send(Buffer.from('<b>one'))
    await page.locator('.frames').getByText('<b>one').nth(1).waitFor()
    socket.send(Buffer.of(0xff, 0))
    await page.locator('.frames').getByText('00000000  ff 00').nth(1).waitFor()
    assert.match((await page.locator('.frame-head').first().textContent()) ?? '', /← from the service/)
    await shown.assertAccessible('frames')
    await shown.picture('agent-frames')
    socket.close()
    await page.getByText('new ones appear').waitFor({ state: 'detached' })
    await page.getByText('4 frames').waitFor()

    const stream = beginVisit(publicUrl(), { ca: platform.ca }, { path: '/events' })
    stream.on('error', () => {})
    await until('the service has the request', () => service.events)
    await openExchange(/GET \/events/)
    for (const name of ['first', 'second']) {
      service.events?.write(`event: ${name}\ndata: {"a":1}\n\n`)
      await page.locator('.frames').getByText(name).waitFor()
    }
    service.events?.end()
    await page.getByText('2 events', { exact: true }).waitFor()
    stream.destroy()
  })

  test('a request is replayed, unchanged and edited, and both answers are shown side by side', async () => {
    await visitor({ path: '/count', method: 'POST', body: 'one' })
    await openExchange(/POST \/count/)
    await button(/^Replay$/).click()
    const compared = page.locator('.compared')
    await compared.getByText('"count": 1').waitFor()
    assert.equal(await compared.locator('del').filter({ hasText: '"count": 1' }).count(), 1)
    assert.equal(await compared.locator('ins').filter({ hasText: '"count": 2' }).count(), 1)
    assert.equal(await compared.locator('del, ins').filter({ hasText: '"same"' }).count(), 0)
    await page.getByText(/The responses differ in .*1 line of the body/).waitFor()
    await shown.assertGoodInAllLooks('agent-side-by-side')
    await button('Edit and replay').click()
    await shown.assertAccessible('a request to change')
    await page.getByLabel('Path and query').fill('/echo?again')
    await page.getByLabel('Body', { exact: true }).fill('changed')
    await button('Send edited request').click()
    await page.getByRole('heading', { name: 'POST /echo?again', level: 1 }).waitFor()
    await page.locator('pre').filter({ hasText: '"body": "changed"' }).waitFor()
    await shown.goTo('/traffic', 'Traffic')
    await page.getByRole('cell', { name: 'replay', exact: true }).nth(1).waitFor()
    shown.allowFaults(/status of 409/)
    await openExchange(/GET \/socket/)
    await button(/^Replay$/).click()
    await page.getByText('it asks for an upgrade of the connection').waitFor()
  })

  test('the list is filtered by method, status, tunnel and text', async () => {
    await shown.goTo('/traffic', 'Traffic')
    await page.getByLabel('Status').fill('101')
    await page.getByText('1 request', { exact: true }).waitFor()
    await page.getByLabel('Status').fill('')
    await page.getByLabel('Method').fill('post')
    await page.getByRole('link', { name: /GET/ }).first().waitFor({ state: 'detached' })
    await page.getByLabel('Tunnel').selectOption('web')
    await page.getByRole('heading', { name: 'Traffic' }).click()
    await page.keyboard.press('/')
    await page.keyboard.type('again')
    await page.getByText(/^1 of \d requests$/).waitFor()
    await page.getByLabel('Status').fill('5xx')
    await page.getByText('No matching requests.').waitFor()
  })

  test('everything can be reached by keyboard alone', async () => {
    await page.reload()
    await page.getByRole('link', { name: /GET \/first/ }).waitFor()
    await page.keyboard.press('Tab')
    assert.equal(await page.locator(':focus').textContent(), 'Skip to content')
    const names = new Set<string>()
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press('Tab')
      names.add(String(await page.evaluate('document.activeElement.textContent')))
    }
    for (const name of ['Tunnels', 'Clear all', 'POST /echo'])
      assert.ok(names.has(name), `${name} in ${[...names].join()}`)
    await page.getByRole('link', { name: /GET \/first/ }).focus()
    await page.keyboard.press('Enter')
    await until('the title has the focus', async () =>
      (await page.locator(':focus').textContent())?.startsWith('GET /first'),
    )
  })

  test('tunnels are shown with their figures, started and stopped', async () => {
    await page.getByRole('link', { name: 'Tunnels' }).click()
    await page.getByRole('link', { name: publicUrl() }).waitFor()
    await page.getByText(/^\d+ total, [\d.]+\/min now/).waitFor()
    await page.getByText('app=shop').waitFor()
    await page.getByLabel('Service').fill('no port')
    await button('Start').click()
    shown.allowFaults(/status of 4(00|09)/)
    const refusal = page.getByRole('alert').filter({ hasText: 'Invalid tunnel configuration: addr' })
    await refusal.locator('code', { hasText: 'addr' }).waitFor()
    await page.getByLabel('Service').fill('3999')
    await page.getByLabel('Name').fill('other')
    await button('Start').click()
    await page.getByText('http://localhost:3999').waitFor()
    await shown.assertGoodInAllLooks('agent-tunnels')
    await button('Stop other').click()
    await shown.assertAccessible('the question before a tunnel is stopped')
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
    await page.getByText('http://localhost:3999').waitFor({ state: 'detached' })
  })

  test('pages of other sites get nothing, under any name', async () => {
    const evil = await shown.context.newPage()
    const answer = await evil.goto(url.replace('127.0.0.1', 'evil.example.com'))
    assert.equal(answer?.status(), 403)
    await evil.goto('about:blank')
    await evil.setContent(`<iframe src="${url}"></iframe>`)
    await until('the browser has refused the frame', () => evil.frames()[1]?.url().startsWith('chrome-error:'))
    // A link to the page works, but its site cannot control the opened window.
    await evil.setContent(`<a href="${url}" target="_blank" rel="opener">look</a>`)
    const [opened] = await Promise.all([shown.context.waitForEvent('page'), evil.getByText('look').click()])
    await opened.getByRole('heading', { name: 'Traffic', level: 1 }).waitFor()
    assert.equal(await opened.evaluate('window.opener'), null)
    await opened.close()
    await evil.close()
  })

  test('while the agent is down the page says so, and it recovers without a reload', async () => {
    await shown.goTo('/traffic', 'Traffic')
    await page.locator('.is-live').waitFor()
    assert.deepEqual(shown.faults, [])
    shown.allowFaults(/ERR_CONNECTION|ERR_INCOMPLETE|Failed to load|status of 4/)
    agent.kill('SIGTERM')
    await agent.ended
    await page.getByText('The agent has not responded since').waitFor()
    await page.getByText(/^as of \d\d:\d\d:\d\d/).waitFor()
    assert.equal(await page.locator('.is-live').count(), 0)
    await shown.assertAccessible('a page without its agent')
    agent = await startOver()
    await page.getByText('No requests yet').waitFor()
    await page.getByText('The agent has not responded since').waitFor({ state: 'detached' })
    await visitor({ path: '/afterwards' })
    await page.getByRole('link', { name: /GET \/afterwards/ }).waitFor()
    assert.deepEqual(shown.faults, [])
  })
}
