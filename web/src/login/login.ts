// SPDX-License-Identifier: MIT
// Asks for an access token and has the server store it in a cookie that scripts cannot read. Then
// it returns to the page the browser was going to, never to another site.

const field = document.querySelector<HTMLInputElement>("#token")!;
const trouble = document.querySelector("#trouble")!;

function goOn(): void {
  const here = new URL(".", location.href);
  let next = here;
  try {
    const wanted = new URL(new URLSearchParams(location.search).get("next") ?? "", here);
    if (wanted.origin === here.origin) next = wanted;
  } catch {
    // Not a URL.
  }
  if (next.hash === "") next.hash = location.hash;
  location.replace(next);
}

async function logIn(token: string): Promise<void> {
  trouble.textContent = "";
  try {
    const reply = await fetch("api/v1/login", { method: "POST", headers: { authorization: `Bearer ${token}` } });
    if (reply.ok) {
      localStorage.setItem("tracelake.loggedIn", "yes"); // the page cannot read the cookie itself
      goOn();
      return;
    }
    const told = await reply.json().catch(() => ({})) as { error?: string };
    trouble.textContent = reply.status === 401 ? told.error ?? "Unknown token." : told.error ?? `The server answered with status ${reply.status}.`;
  } catch {
    trouble.textContent = "The server cannot be reached.";
  }
  field.select();
}

document.querySelector("form")!.addEventListener("submit", (event) => {
  event.preventDefault();
  // Characters that no token has are not valid in a header.
  const token = field.value.trim();
  if (/^[!-~]+$/.test(token)) void logIn(token);
  else trouble.textContent = "A token contains only letters and digits.";
});

// Already logged in, or a server without tokens.
fetch("api/v1/traces", { method: "HEAD" }).then((reply) => { if (reply.ok) goOn(); }, () => undefined);
