"""A headless Chromium."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement


class Browser:
    def __init__(self, javascript: bool) -> None:
        options = webdriver.ChromeOptions()
        # Its sandbox does not work for root, and shared memory may be small in a container.
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        if not javascript:
            options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
        driver = shutil.which("chromedriver")
        assert driver, "harness doctor --tests --install"
        self.driver = webdriver.Chrome(options=options, service=Service(driver))

    def show(self, path: Path, anchor: str = "") -> None:
        # A page that differs only in its anchor would not be loaded again.
        self.driver.get("about:blank")
        self.driver.get(path.as_uri() + anchor)

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def shown(self, selector: str) -> list[WebElement]:
        return [one for one in self.driver.find_elements(By.CSS_SELECTOR, selector) if one.is_displayed()]

    def ask(self, script: str) -> Any:
        return self.driver.execute_script(f"return {script}")

    def filter(self, words: str = "", outcome: str = "") -> int:
        """How many cases are left."""
        self.driver.execute_script(
            """
            const filter = document.getElementById("filter");
            filter.querySelector("input").value = arguments[0];
            filter.querySelector("select").value = arguments[1];
            filter.dispatchEvent(new Event("input"));
            """,
            words,
            outcome,
        )
        return int(self.ask("document.querySelectorAll('#cases tbody tr:not([hidden])').length"))

    def complaints(self) -> list[Any]:
        return list(self.driver.get_log("browser"))  # type: ignore[no-untyped-call]
