/** The dashboard in a real browser: from the first start to an edge with traffic, in both themes and two widths. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { startAgent } from '../../support/agent-process.ts'
import type { TestChromium } from '../../support/browser.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, type Owner } from '../../support/upstream.ts'
import { visit } from '../../support/visitor.ts'
import { withBrowser } from './browser-suite.ts'
import { WatchedPage } from './watched-page.ts'

const HOSTILE = '<img src=x onerror=alert(1)>\u202e"\'</script>'

await withBrowser('the dashboard in a real browser', suite)

function suite(chromium: TestChromium): void {
  let platform: Platform
  let browser: Browser
  let shown: WatchedPage
  let page: Page
  const closers: (() => unknown)[] = []
  const owner: Owner = { after: (close) => closers.push(close) }

  before(async () => {
    platform = await startPlatform()
    browser = await chromium.launch({ names: '' })
    shown = await WatchedPage.open(browser, `${platform.url}/`)
    page = shown.page
  })
  after(async () => {
    for (const close of closers.reverse()) await close()
    await browser?.close()
    await platform?.stop()
    await chromium.close()
  })

  const button = (name: string | RegExp) => page.getByRole('button', { name })

  test('a newcomer signs in, and gets a command with the real address and a token', async () => {
    await page.getByLabel('API key').waitFor()
    await shown.assertAccessible('the sign-in')
    await shown.assertNothingInline()
    await shown.picture('sign-in')
    await shown.signIn(platform.apiKey)
    const command = page.locator('.command')
    await command.getByText(`postern http 3000 --server ${platform.agents} --ca`).waitFor()
    await button('Create an authtoken and insert it').click()
    await command.getByText(/--authtoken \w{40,}$/).waitFor()
    await shown.assertGoodInAllLooks('first-start')
    const cookies = await shown.context.cookies()
    assert.deepEqual(
      cookies.map(({ httpOnly, sameSite }) => ({ httpOnly, sameSite })),
      [{ httpOnly: true, sameSite: 'Strict' }],
    )
    assert.equal(await page.evaluate('document.cookie'), '')
    const token = (await command.textContent())?.split(' ').at(-1) ?? ''
    const service = await httpUpstream(owner, (_, response) => response.end('hello'))
    await startAgent(owner, {
      server: platform.agents,
      caFile: platform.caFile,
      authtoken: token,
      metadata: HOSTILE,
      tunnels: {
        web: { proto: 'http', addr: service.address, domain: 'hello.localhost' },
        group: { addr: service.address, labels: ['app=shop'] },
      },
    })
    await page.locator('.command').waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'https://hello.localhost' }).waitFor()
    await shown.assertAccessible('the wait for the first request')
    await visit(`https://hello.localhost:${platform.httpsPort}`, { ca: platform.ca }, { path: '/first' })
    await page.getByRole('heading', { name: 'First request received' }).waitFor()
    await page.getByRole('link', { name: 'GET hello.localhost/first' }).waitFor()
  })

  test('what is online appears without a reload, and what agents send is shown as text', async () => {
    await shown.goTo('/endpoints', 'Endpoints')
    await page.getByRole('link', { name: 'https://hello.localhost' }).waitFor()
    await shown.assertAccessible('endpoints')
    await shown.goTo('/tunnels', 'Tunnels')
    await page.getByText('app=shop').waitFor()
    await shown.assertAccessible('tunnels')
    await shown.goTo('/tunnel_sessions', 'Sessions')
    await page.locator('td a.id').first().click()
    await page.getByText('<img src=x onerror=alert(1)>‹U+202E›').waitFor()
    assert.equal(await page.locator('main img').count(), 0)
    const served = page.locator('.card', { has: page.getByRole('heading', { name: 'Tunnels' }) }).getByRole('listitem')
    await served.filter({ hasText: /hello\.localhost.*forwards to http:\/\/(localhost|127)/ }).waitFor()
    await served.filter({ hasText: 'app' }).waitFor()
    assert.equal(await served.count(), 2)
    await shown.assertAccessible('a session')
  })

  test('an agent can be updated, restarted and stopped, and the results stay visible', async () => {
    const { agents: server, caFile, authtoken } = platform
    await startAgent(owner, {
      server,
      caFile,
      authtoken,
      tunnels: { reported: { addr: '3999', domain: 'told.localhost' } },
    })
    await shown.goTo('/tunnel_sessions', 'Sessions')
    // The newest session comes first.
    await page.getByText('2 sessions').waitFor()
    const [first] = (await platform.admin.get('/tunnel_sessions')).tunnel_sessions
    const row = page.locator('tbody tr').first()
    shown.allowFaults(/400/)
    await row.getByRole('button', { name: 'Update' }).click()
    await page.locator('.notice', { hasText: 'no source of updates' }).waitFor()
    await row.getByRole('button', { name: 'Restart' }).click()
    await page.locator('.notice', { hasText: 'come back as a new session' }).waitFor()
    const second = await until('the agent is back', async () => {
      const { tunnel_sessions: all } = await platform.admin.get('/tunnel_sessions')
      return all.length === 2 && all[0].id !== first.id && all[0]
    })
    await row.locator(`a[title="${second.id}"]`).waitFor()
    await row.getByRole('button', { name: 'Stop' }).click()
    await shown.assertAccessible('the question before an agent is stopped')
    await page.getByRole('dialog').getByRole('button', { name: 'Stop the agent' }).click()
    await page.getByText('1 session', { exact: true }).waitFor()
    await page.locator('.notice', { hasText: 'The agent is stopping.' }).waitFor()
    await shown.assertAccessible('sessions')
  })

  test('an edge is created by forms, which show refusals of the API at the field, and serves a visitor', async () => {
    await shown.goTo('/backends/tunnel_group?new', /Create a tunnel group/)
    await button('Add to labels').click()
    await page.getByLabel('Name 1').fill('app')
    await page.getByLabel('Value 1').fill('shop')
    await button('Create').click()
    await button('Delete').waitFor()
    const backendId = /bkdtg_\w+/.exec(page.url())?.[0] ?? ''
    assert.notEqual(backendId, '')

    await shown.goTo('/edges/https?new', /Create an HTTPS edge/)
    await button('Add to hostports').click()
    await page.getByLabel('hostports 1').fill('shop.localhost:1')
    shown.allowFaults(/400/)
    await button('Create').click()
    await page.locator('.field-fault', { hasText: 'must have port' }).waitFor()
    await shown.assertAccessible('a form with a fault')
    await shown.picture('form-with-fault')
    await page.getByLabel('hostports 1').fill('shop.localhost:443')
    await button('Create').click()

    await page.getByRole('link', { name: 'New route' }).click()
    await page.getByLabel('match_type').selectOption('path_prefix')
    await page.getByLabel('match (required)', { exact: true }).fill('/')
    await button('Create').click()
    await button('Set up backend').click()
    await page.getByLabel('backend_id').fill(backendId)
    await button('Save backend').click()
    await page.getByRole('switch', { name: 'backend' }).waitFor()
    const url = `https://shop.localhost:${platform.httpsPort}/`
    assert.equal((await visit(url, { ca: platform.ca })).text, 'hello')
    await shown.assertGoodInAllLooks('route')
  })

  test('a module is switched off and on with one click', async () => {
    const [edge] = (await platform.admin.get('/edges/https')).https_edges
    const path = `/edges/https/${edge.id}/routes/${edge.routes[0].id}`
    const names = await page.locator('.module-name').allTextContents()
    assert.ok(names.indexOf('ip_restriction') < names.indexOf('oidc') && names.at(-1) === 'backend', names.join())
    const toggle = page.getByRole('switch', { name: 'backend' })
    await toggle.click()
    await page.locator('[role=switch][aria-checked=false]').waitFor()
    assert.equal((await platform.admin.get(path)).backend.enabled, false)
    await shown.goTo('/', 'Overview')
    await page.getByText('has no backend, so visitors get an error').waitFor()
    await shown.goTo(path, '/')
    await toggle.click()
    await page.locator('[role=switch][aria-checked=true]').waitFor()
    assert.equal((await platform.admin.get(path)).backend.enabled, true)
  })

  test('a guard is switched off or removed only after a question', async () => {
    const [edge] = (await platform.admin.get('/edges/https')).https_edges
    const path = `/edges/https/${edge.id}/routes/${edge.routes[0].id}`
    const guard = async () => (await platform.admin.get(path)).user_agent_filter
    await platform.admin.send('PUT', `${path}/user_agent_filter`, { body: { deny: ['curl'] } })
    await shown.goTo('/', 'Overview')
    await shown.goTo(path, '/')
    const toggle = page.getByRole('switch', { name: 'user_agent_filter' })
    const dialog = page.getByRole('dialog')
    await toggle.click()
    await shown.assertAccessible('the question before a guard is switched off')
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    assert.equal((await guard()).enabled, true)
    await toggle.click()
    await dialog.getByRole('button', { name: 'Switch off' }).click()
    await page.locator('[role=switch][aria-checked=false]').waitFor()
    assert.equal((await guard()).enabled, false)
    // Switching it on needs no question.
    await toggle.click()
    await until('it is on', async () => (await guard()).enabled === true)
    await page.getByRole('switch', { name: 'user_agent_filter', checked: true }).waitFor()
    await button('Edit user_agent_filter').click()
    await page.getByLabel('enabled').uncheck()
    await button('Save user_agent_filter').click()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    assert.equal((await guard()).enabled, true)
    await button('Remove user_agent_filter').click()
    assert.notEqual(await guard(), null)
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await until('it is gone', async () => (await guard()) === null)
  })

  test('a key is shown once, and a resource is changed and deleted', async () => {
    await shown.goTo('/api_keys?new', /Create an API key/)
    await page.getByLabel('description').fill(HOSTILE)
    await button('Create').click()
    const token = (await page.locator('dialog .secret').textContent()) ?? ''
    assert.match(token, /^\w{40,}$/)
    await shown.assertAccessible('a secret that is shown once')
    await button('I have saved it').click()
    await button('Edit').click()
    await page.getByLabel('description').fill('changed')
    await button('Save').click()
    await page.getByRole('heading', { name: 'changed', level: 1 }).waitFor()
    assert.ok(!(await page.content()).includes(token))
    await button('Delete').click()
    await shown.assertAccessible('the question before something is deleted')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'API keys', level: 1 }).waitFor()
    assert.equal((await platform.admin.get('/api_keys')).keys.length, 1)
  })

  test('a policy is written with completion, and its effect is shown beside it', async () => {
    await shown.goTo('/policy', 'Policy')
    await shown.assertAccessible('the policy editor')
    const editor = page.getByLabel('Policy (YAML or JSON)')
    await editor.press('Control+End')
    await editor.pressSequentially('  - actions:\n      - type: rat')
    await page.locator('.offers', { hasText: 'rate-limit' }).waitFor()
    await editor.press('Enter')
    await until('the word is taken', async () => /- type: rate-limit$/.test(await editor.inputValue()))
    shown.allowFaults(/400/)
    await button('Explain').click()
    await page.getByRole('alert').filter({ hasText: 'config.name' }).waitFor()
    await editor.fill((await editor.inputValue()).replace('rate-limit', 'deny'))
    await button('Explain').click()
    await page.locator('.verdict', { hasText: 'with 403' }).waitFor()
    await shown.assertGoodInAllLooks('policy')
  })

  test('the form of the policy module completes the words of policies, and shows refusals at the field', async () => {
    const [edge] = (await platform.admin.get('/edges/https')).https_edges
    await shown.goTo(`/edges/https/${edge.id}/routes/${edge.routes[0].id}`, '/')
    await button('Set up policy').click()
    await button('Add to inbound').click()
    await button('Add to expressions').click()
    const expression = page.getByLabel('expressions 1')
    await expression.pressSequentially('req.url.pa')
    await page.locator('.offers', { hasText: 'req.url.path' }).waitFor()
    await expression.press('Tab')
    await until('the word is taken', async () => (await expression.inputValue()) === 'req.url.path')
    await button('Add to actions').click()
    const type = page.getByLabel('type (required)')
    await page.locator('datalist option[value="rate-limit"]').waitFor({ state: 'attached' })
    await type.fill('deny')
    shown.allowFaults(/400/)
    await button('Save policy').click()
    await page.locator('.field-fault').first().waitFor()
    await until('the field at fault has the focus', () =>
      page.evaluate('document.activeElement.getAttribute("aria-invalid") === "true"'),
    )
    await shown.assertAccessible('the form of a policy')
    await expression.fill("req.url.path == '/secret'")
    await button('Save policy').click()
    await page.getByRole('switch', { name: 'policy' }).waitFor()
  })

  test('a member sees what members may see, and no button that they may not use', async () => {
    const [edge] = (await platform.admin.get('/edges/https')).https_edges
    const capture = await platform.admin.create('/captures', { edge_id: edge.id, unmask: true })
    const url = `https://shop.localhost:${platform.httpsPort}/`
    const { token } = await platform.member()
    const other = await WatchedPage.open(browser, `${platform.url}/`)
    owner.after(() => other.close())
    await other.signIn(token)
    const { page: theirs } = other
    const links = theirs.locator('nav a')
    for (const name of ['Users', 'Bots', 'Nodes', 'IP restrictions']) {
      assert.equal(await theirs.getByRole('link', { name, exact: true }).count(), 0, name)
    }
    for (const place of await links.evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''))) {
      await theirs.goto(`${platform.url}/${place}`)
      if (place !== '#/policy') await theirs.locator('.is-live').waitFor()
      assert.equal(await theirs.locator('.notice.is-bad').count(), 0, place)
    }
    await other.goTo('/users?new', 'Admins only')
    assert.equal(await theirs.locator('main button').count(), 0)

    // What a capture of an admin keeps unmasked stays masked for a member.
    await visit(url, { ca: platform.ca }, { path: '/kept', headers: { authorization: 'Bearer of-the-visitor' } })
    for (const [watched, value] of [
      [shown, 'Bearer of-the-visitor'],
      [other, '[masked]'],
    ] as const) {
      await watched.goTo('/traffic', 'Traffic')
      await watched.page.getByRole('link', { name: /\/kept/ }).click()
      await watched.page.locator('.headers').getByText(value).waitFor()
    }
    assert.ok(!(await theirs.content()).includes('of-the-visitor'))
    await platform.admin.delete(`/captures/${capture.id}`)

    await theirs.getByRole('link', { name: 'Captures', exact: true }).click()
    await theirs.getByText('Credentials, cookies and identity headers are masked').waitFor()
    await theirs.getByRole('link', { name: 'New' }).click()
    await theirs.getByLabel('edge_id').fill(edge.id)
    for (const name of ['unmask', 'owner_id']) assert.equal(await theirs.getByLabel(name).count(), 0, name)
    await theirs.getByLabel('bodies').check()
    await theirs.getByLabel('duration').fill('300')
    await other.assertAccessible('a form for captures')
    await theirs.getByRole('button', { name: 'Create' }).click()
    await theirs.getByText(/^in \d min/).waitFor()
    const [running] = (await platform.admin.get('/captures')).captures
    assert.deepEqual([running.edge_id, running.bodies, running.unmask], [edge.id, true, false])
    await theirs.getByRole('button', { name: 'End' }).click()
    await theirs.getByRole('dialog').getByRole('button', { name: 'End' }).click()
    await theirs.getByText('None yet.').waitFor()
    assert.deepEqual(other.faults, [])
  })

  test('every list and every form is accessible', async () => {
    const places = await page
      .locator('nav a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href') ?? ''))
    assert.ok(places.length > 25)
    let forms = 0
    for (const place of places) {
      await page.goto(`${platform.url}/${place}`)
      await page.locator('h1', { hasNotText: 'Loading' }).waitFor()
      if (place !== '#/policy') await page.locator('.is-live').first().waitFor()
      await shown.assertAccessible(place)
      const create = page.getByRole('link', { name: 'New', exact: true })
      if ((await create.count()) === 0) continue
      forms++
      await create.click()
      await page.getByRole('heading', { name: /^Create an? /, level: 1 }).waitFor()
      // Adds every optional part, so that all of the form is checked.
      for (const add of await page.locator('.form > fieldset > button').all()) await add.click()
      await shown.assertAccessible(`the form of ${place}`)
    }
    assert.ok(forms > 18, `${forms} forms`)
  })

  test('no errors were logged, and no other origin was called', () => assert.deepEqual(shown.faults, []))
}
