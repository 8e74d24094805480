// Starts `ptokit lsp` and hands it files of PTO text and of Python.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = async () => {
  const settings = workspace.getConfiguration("ptokit");
  const server = { command: settings.get("python"), args: ["-m", "ptokit", "lsp"] };
  client = new LanguageClient("ptokit", "ptokit", server, {
    documentSelector: [{ language: "pto" }, { language: "python", scheme: "file" }],
    initializationOptions: { python: settings.get("checkPython") },
  });
  await client.start();
};

exports.deactivate = () => client && client.stop();
